package crash_test

import (
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestSoak kills anything at any time while commands come one after the other. AGENCY_CRASH_SOAK is how often, and
// AGENCY_CRASH_SEED repeats a soak, as far as time lets it.
func TestSoak(t *testing.T) {
	n, _ := strconv.Atoi(os.Getenv("AGENCY_CRASH_SOAK"))
	if n == 0 {
		t.Skip("make crash-soak N=1000")
	}
	seed, err := strconv.ParseUint(os.Getenv("AGENCY_CRASH_SEED"), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("AGENCY_CRASH_SEED=%d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	w := newWorld(t)
	commands := [][]string{
		{"run", "--name", "target", "--prompt", asks},
		{"run", "--name", "target", "--prompt", asks},
		{"run", "--name", "target", "--headless", "--prompt", "write work.txt precious\nchild"},
		{"run", "--name", "target", "--runner", "broken", "--prompt", asks},
		{"stop", "target"},
		{"resume", "target"},
		{"resume", "--fresh", "--restart", "target"},
		{"rm", "--delete-branch", "target"},
		{"rm", "--delete-branch", "target"},
		{"daemon", "stop"},
		{"ls"},
	}
	all := victims()
	for i := range n {
		command, v := commands[random.IntN(len(commands))], &all[random.IntN(len(all))]
		w.output.Reset()
		w.start(command)
		time.Sleep(time.Duration(random.IntN(250)) * time.Millisecond)
		w.kill(v.pids(w))
		w.awaitClient()
		if wrong := w.rest(true); len(wrong) > 0 {
			t.Fatalf("after %d kills, of %s in agency %v:\n%s\nthe client said: %s", i+1, v.name, command, strings.Join(wrong, "\n"), w.output.String())
		}
	}
	w.calm(true)
}
