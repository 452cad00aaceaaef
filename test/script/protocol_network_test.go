package script_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"agency/test/fixture"
)

// An agent in its own protocol keeps its way out when its wrapper is killed: what connects meanwhile
// waits for the next wrapper, which continues with the hosts and the counts of the first one.
func TestProtocolNetwork(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bwrap"); err != nil {
		t.Skip("bubblewrap is not installed: make deps")
	}
	outlivesItsWrapper(t, fixture.New(t, bin), "process")
}

// An agent in a container keeps its way out too.
func TestProtocolNetworkOfContainer(t *testing.T) {
	t.Parallel()
	outlivesItsWrapper(t, withEngine(t), "container")
}

func outlivesItsWrapper(t *testing.T, f *fixture.Fixture, level string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	port := server.Listener.Addr().String()[len("127.0.0.1"):]
	n := netted{t: t, f: f}
	n.configure("a.localhost" + port)

	n.must("run", "--runner", "goose", "--sandbox", level, "--network", "allow", "--name", "netted", "--prompt", "make it")
	n.worktree = n.show().Run.Worktree
	n.must("wait", "netted", "--for", "needs-input", "--timeout", "120s")
	n.must("answer", "netted", "allow")

	n.sends("fetch a.localhost" + port)
	n.heard("fetched a.localhost"+port+" 200", 1)
	n.sends("fetch b.localhost" + port)
	n.heard("fetched b.localhost"+port+" 403", 1)
	n.sends("fetch b.localhost" + port)
	n.heard("fetched b.localhost"+port+" 403", 2)
	n.kept(2)

	// Nothing but the agent and its holder lives when it connects.
	n.sends("fetch a.localhost" + port + " later")
	before := n.show()
	n.must("daemon", "stop")
	if err := syscall.Kill(before.Attempts[0].Wrapper.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(n.worktree, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	n.heard("connected for a.localhost"+port, 2)
	n.must("answer", "netted", "once", "--host", "b.localhost"+port)
	n.heard("fetched a.localhost"+port+" 200", 2)
	n.sends("fetch b.localhost" + port)
	n.heard("fetched b.localhost"+port+" 200", 1)
	n.sends("fetch c.localhost" + port)
	n.heard("fetched c.localhost"+port+" 403", 1)
	if after := n.show(); after.Attempts[0].Wrapper.PID == before.Attempts[0].Wrapper.PID {
		t.Error("the wrapper was not replaced")
	}
	n.hidden()

	n.must("stop", "netted")
	use := n.show().Attempts[0].Network
	if got, want := fmt.Sprint(use.Refused), fmt.Sprintf("[{b.localhost%s 2} {c.localhost%s 1}]", port, port); got != want {
		t.Errorf("refused were %s, want %s", got, want)
	}
	if got := strings.Join(use.Hosts, " "); !strings.Contains(got, "a.localhost"+port+" b.localhost"+port) {
		t.Errorf("the hosts are %s", got)
	}
	if said := n.must("events", "--run", "netted"); strings.Count(said, "network.refused") != 2 {
		t.Errorf("a refusal is told again:\n%s", said)
	}
	if _, err := os.Lstat(n.socket()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket of the holder is left: %v", err)
	}
	if left := n.processes("agency"); len(left) != 0 {
		t.Errorf("these processes are left: %v", left)
	}
}

// netted is a fixture with the run netted.
type netted struct {
	t        *testing.T
	f        *fixture.Fixture
	worktree string
}

// configure makes the scripted agent the runner goose, which reaches a host.
func (n netted) configure(entry string) {
	n.t.Helper()
	script, err := os.ReadFile("../agent/acp.sh")
	if err != nil {
		n.t.Fatal(err)
	}
	config, err := os.ReadFile(n.f.Config)
	if err != nil {
		n.t.Fatal(err)
	}
	config = fmt.Appendf(config, "[sandbox]\nhosts = [%q]\nimage = %q\n[runners.custom.goose]\nexec = \"sh\"\ndefault_args = [\"acp.sh\"]\nprotocol = \"acp\"\n", entry, fixture.Image)
	if err := errors.Join(os.WriteFile(n.f.Config, config, 0o600), os.WriteFile(filepath.Join(n.f.Repo, "acp.sh"), script, 0o600)); err != nil {
		n.t.Fatal(err)
	}
	for _, args := range [][]string{{"add", "."}, {"commit", "-q", "-m", "agent"}} {
		if r := n.f.Command("", "git", args...); r.Exit != 0 {
			n.t.Fatal(r.Stderr)
		}
	}
}

// sends sends a message to the agent, which takes one at a time.
func (n netted) sends(text string) {
	n.t.Helper()
	n.must("wait", "netted", "--for", "waiting", "--timeout", "60s")
	n.must("send", "netted", text)
}

func (n netted) must(args ...string) string {
	n.t.Helper()
	r := n.f.Agency(args...)
	if r.Exit != 0 {
		n.t.Fatalf("agency %v: %s%s%s%s", args, r.Stdout, r.Stderr, n.f.Agency("explain", "netted").Stdout, n.f.Agency("logs", "netted", "--stderr").Stdout)
	}
	return r.Stdout
}

// shownNetted is what a test needs of agency show --json.
type shownNetted struct {
	Run struct {
		ID       string
		Worktree string `json:"worktree_path"`
	}
	Attempts []struct {
		Wrapper struct{ PID int }
		Network struct {
			Hosts   []string
			Refused []struct {
				Host  string
				Count int
			}
		}
	}
}

func (n netted) show() shownNetted {
	n.t.Helper()
	var shown struct{ Data shownNetted }
	if err := json.Unmarshal([]byte(n.must("show", "netted", "--json")), &shown); err != nil {
		n.t.Fatal(err)
	}
	return shown.Data
}

// heard waits until the agent wrote a line that many times.
func (n netted) heard(line string, times int) {
	n.t.Helper()
	await(n.t, line, func() bool {
		data, _ := os.ReadFile(filepath.Join(n.worktree, "heard.txt"))
		return strings.Count(string(data), line+"\n") == times
	})
}

func (n netted) attempt() string {
	n.t.Helper()
	found, _ := filepath.Glob(filepath.Join(n.f.Data, "runs", "*", "attempts", "1"))
	if len(found) != 1 {
		n.t.Fatal(found)
	}
	return found[0]
}

func (n netted) socket() string { return filepath.Join(n.attempt(), "wrapper", "network.sock") }

// kept waits until a next wrapper would know how often the first host was refused.
func (n netted) kept(times int) {
	n.t.Helper()
	await(n.t, "the count of refusals", func() bool {
		data, _ := os.ReadFile(filepath.Join(n.attempt(), "wrapper", "network.json"))
		return strings.Contains(string(data), `"count":`+strconv.Itoa(times))
	})
}

// processes returns the processes of the run that run a program.
func (n netted) processes(program string) (pids []string) {
	n.t.Helper()
	mark := "AGENCY_RUN_ID=" + n.show().Run.ID + "\x00"
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		env, _ := os.ReadFile(filepath.Join(dir, "environ"))
		name, _ := os.ReadFile(filepath.Join(dir, "comm"))
		if strings.Contains(string(env), mark) && strings.TrimSpace(string(name)) == program {
			pids = append(pids, filepath.Base(dir))
		}
	}
	return pids
}

// hidden checks that the agent has no way to the socket of its holder, and to the list of its hosts.
func (n netted) hidden() {
	n.t.Helper()
	if _, err := os.Lstat(n.socket()); err != nil {
		n.t.Errorf("the holder has no socket: %v", err)
	}
	agents := n.processes("sh")
	for _, pid := range agents {
		if _, err := os.Lstat(filepath.Join("/proc", pid, "root", filepath.Dir(n.socket()))); err == nil {
			n.t.Error("the agent sees the folder of its holder's socket")
		}
	}
	if len(agents) == 0 {
		n.t.Error("there is no agent")
	}
}
