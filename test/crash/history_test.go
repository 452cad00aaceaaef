package crash_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"agency"
)

// TestHistories lets a landing queue live through random histories, and checks with plain git what
// became of its branch. make crash-queue takes their number (N) and repeats one (SEED).
func TestHistories(t *testing.T) {
	t.Parallel()
	seed, several := uint64(1), 2
	if whole {
		several = 12
	}
	if n, err := strconv.Atoi(os.Getenv("AGENCY_CRASH_HISTORIES")); err == nil {
		several, seed = n, uint64(time.Now().UnixNano())%1_000_000*1000
	}
	if given, err := strconv.ParseUint(os.Getenv("AGENCY_CRASH_SEED"), 10, 64); err == nil {
		seed = given
	}
	for i := range uint64(several) {
		t.Run(fmt.Sprint(seed+i), func(t *testing.T) {
			t.Parallel()
			h := newHistory(t, seed+i)
			for range 6 + h.random.IntN(8) {
				h.step()
			}
			h.end()
		})
	}
}

// history is a random history of a queue: runs that are added to it, the user who commits to the
// branch and has changes in a checkout, checks that fail or fail by chance, and kills.
type history struct {
	*world

	random *rand.Rand
	target string
	first  string // the commit that the branch began at
	runs   []string
	seen   map[string]bool   // commits that the branch stood at, and which may
	solved map[string]string // by run: its work when the user solved its conflict last
	added  map[string]bool
	grown  map[string]bool   // those that have more work than when they were added first
	files  map[string]string // what the user has in the checkout; no landing may change it
	did    []string          // to tell a failure by
	commit int               // of the user, so many
	broken bool              // the user's last commit of this kind does not pass
}

// perChance is a check that fails when a file is named bad-…. When one is named flaky-…, it fails
// once for the same files.
const perChance = `
[[check]]
name = "names"
run = ["sh", "-c", '''
	! ls bad-* 2>/dev/null || exit 1
	ls flaky-* 2>/dev/null && mkdir "$ROOT/flaky.$(git rev-parse "HEAD^{tree}")" && exit 1
	exit 0
''']
`

func newHistory(t *testing.T, seed uint64) *history {
	h := &history{world: newWorld(t), random: rand.New(rand.NewPCG(seed, 15)), seen: map[string]bool{}, solved: map[string]string{}, added: map[string]bool{}, grown: map[string]bool{}, files: map[string]string{}}
	h.target = []string{"main", "trunk"}[h.random.IntN(2)]
	h.writeRepo("shared.txt", "first\n")
	h.writeRepo("notes.txt", "before\n")
	h.git("add", "shared.txt", "notes.txt")
	h.landingSettings(perChance)
	batch, parallel := 1+h.random.IntN(5), 1+h.random.IntN(3)
	h.configure(fmt.Sprintf("[queue]\nbatch = %d\nparallel = %d\n", batch, parallel))
	h.did = append(h.did, fmt.Sprintf("batches of %d, %d at a time", batch, parallel))
	h.must("trust")
	h.git("branch", "trunk")
	h.first = h.git("rev-parse", h.target)
	for i := range 3 + h.random.IntN(3) {
		name := fmt.Sprintf("run-%d", i)
		task := "write " + name + ".txt of " + name + "\n"
		switch h.random.IntN(6) {
		case 0:
			task += "write bad-" + name + " " + []string{"it breaks the check", "stubborn"}[h.random.IntN(2)] + "\n"
		case 1:
			task += "write flaky-" + name + " it breaks the check once\n"
		case 2, 3:
			task += "write shared.txt of " + name + "\n"
		}
		h.must("run", "--name", name, "--headless", "--prompt", task+"commit "+name)
		h.runs = append(h.runs, name)
		h.did = append(h.did, name+" has "+strings.Join(strings.Fields(task), " "))
	}
	h.must(append([]string{"wait"}, h.runs...)...)
	h.files["notes.txt"], h.files["loose.txt"] = "changed by the user\n", "of the user\n"
	if h.random.IntN(4) == 0 {
		h.files["shared.txt"] = "the user's draft\n" // in the way of some runs
	}
	for name, text := range h.files {
		h.writeRepo(name, text)
	}
	return h
}

func (h *history) git(args ...string) string {
	h.t.Helper()
	r := h.f.Command("", "git", args...)
	if r.Exit != 0 {
		h.t.Fatalf("git %v: %s", args, r.Stderr)
	}
	return strings.TrimSpace(r.Stdout)
}

// try runs a command that may fail: the daemon is killed meanwhile, or a state does not allow it.
func (h *history) try(args ...string) bool {
	r := h.f.Agency(args...)
	h.did = append(h.did, fmt.Sprintf("agency %s: %d %s", strings.Join(args, " "), r.Exit, strings.TrimSpace(r.Stderr)))
	return r.Exit == 0
}

// historyPoints are the points at which a daemon may die.
var historyPoints = slices.Concat(queuePoints, []string{
	"checks.worktree", "checks.prepared", "check.started", "check.ended", "check.recorded", "land.checked", "land.unpinned", "land.recorded-landed",
})

// step does one random thing.
func (h *history) step() {
	name := h.runs[h.random.IntN(len(h.runs))]
	switch h.random.IntN(12) {
	case 0, 1, 2:
		h.add(name, h.runs[h.random.IntN(len(h.runs))])
	case 3:
		h.user(fmt.Sprintf("user-%d.txt", h.commit), "of the user\n")
	case 4:
		if h.files["shared.txt"] == "" {
			h.user("shared.txt", fmt.Sprintf("of user-%d\n", h.commit))
		}
	case 5:
		h.broken = !h.broken && h.user("bad-user", "it breaks the check\n")
		if !h.broken {
			h.mend()
		}
	case 6:
		h.try("queue", []string{"hold", "resume", "retry"}[h.random.IntN(3)], name)
	case 7:
		h.try("queue", []string{"pause", "resume"}[h.random.IntN(2)], "--into", h.target)
	case 8:
		h.more(name)
	case 9:
		h.did = append(h.did, "kill the daemon")
		h.kill(h.daemons())
	case 10:
		h.arm("killpoint", historyPoints[h.random.IntN(len(historyPoints))])
	case 11:
		what := map[string]string{"main": "merge --ff-only", "trunk": "update-ref --create-reflog"}[h.target]
		h.arm("gitkill", []string{"git", "daemon"}[h.random.IntN(2)]+" "+[]string{"before", "within", "after"}[h.random.IntN(3)]+" "+what)
	}
	h.check()
}

// arm has the next process that comes to a point die there.
func (h *history) arm(file, how string) {
	h.did = append(h.did, "kill at "+how)
	_ = os.Remove(h.path(file + ".hit"))
	h.write(file, how+"\n")
}

func (h *history) add(names ...string) {
	names = slices.DeleteFunc(names, func(name string) bool { return h.grown[name] })
	if len(names) == 0 {
		return // it could land a second time, rightly
	}
	for !h.try(slices.Concat([]string{"queue", "add", "--into", h.target}, names)...) {
		last := h.did[len(h.did)-1]
		switch {
		case strings.Contains(last, "E_DAEMON"), strings.Contains(last, "the end of the answer did not come"): // killed, or starved
		case !strings.Contains(last, "E_NOTHING_TO_LAND"):
			h.t.Fatal(last)
		case len(names) == 1:
			return
		default: // one of them has landed
			for _, name := range names {
				h.add(name)
			}
			return
		}
	}
	for _, name := range names {
		h.added[name] = true
	}
}

// user makes a commit with one file, and reports whether the branch moved. Git refuses while agency
// moves the branch; it can also refuse for a moment to take the change back, as agency's git still
// has the lock of the index.
func (h *history) user(file, text string) bool {
	h.commit++
	message := fmt.Sprintf("user-%d", h.commit)
	script := `printf %s "$2" >"$1"; git add -- "$1"; git commit -q -m "$3" -- "$1" && exit
		rm -f "$1"; tries=0
		until git reset -q -- "$1" && { ! git cat-file -e "HEAD:$1" 2>/dev/null || git checkout -q -- "$1"; }; do
			tries=$((tries+1)); test $tries -lt 200 || break; sleep 0.05
		done
		exit 1`
	if h.target != "main" {
		script = `set -e; export GIT_INDEX_FILE=$ROOT/users-index; old=$(git rev-parse trunk); git read-tree "$old"
			git update-index --add --cacheinfo "100644,$(printf %s "$2" | git hash-object -w --stdin),$1"
			git update-ref -m user refs/heads/trunk "$(git commit-tree -p "$old" -m "$3" "$(git write-tree)")" "$old"`
	}
	r := h.f.Command("", "sh", "-c", script, "user", file, text, message)
	h.did = append(h.did, fmt.Sprintf("%s writes %s: %d %s", message, file, r.Exit, strings.TrimSpace(r.Stderr)))
	return r.Exit == 0
}

// mend takes back what the user broke.
func (h *history) mend() {
	h.await("the user to mend the branch", func() bool {
		if h.f.Command("", "git", "cat-file", "-e", h.target+":bad-user").Exit != 0 {
			return true
		}
		script := `git rm -qf -- bad-user && git commit -q -m user-mends -- bad-user || { git reset -q -- bad-user; git checkout -q -- bad-user; }`
		if h.target != "main" {
			script = `set -e; export GIT_INDEX_FILE=$ROOT/users-index; old=$(git rev-parse trunk); git read-tree "$old"; git update-index --force-remove bad-user
				git update-ref -m user refs/heads/trunk "$(git commit-tree -p "$old" -m user-mends "$(git write-tree)")" "$old"`
		}
		r := h.f.Command("", "sh", "-c", script)
		h.did = append(h.did, fmt.Sprintf("the user mends it: %d %s", r.Exit, strings.TrimSpace(r.Stderr)))
		h.f.Agency("queue", "ls") // a daemon takes away the locks of one that was killed
		return false
	})
}

// more lets the user commit something in the worktree of a run.
func (h *history) more(name string) {
	tree := h.run(name).Worktree
	h.grown[name] = h.added[name]
	file := fmt.Sprintf("more-%s-%d.txt", name, h.commit)
	h.commit++
	r := h.f.Command("", "sh", "-ec", `cd "$1"; echo more >"$2"; git add -- "$2"; git commit -q -m "$2"`, "more", tree, file)
	h.did = append(h.did, fmt.Sprintf("%s gets %s: %d %s", name, file, r.Exit, r.Stderr))
}

// check compares what is there with what may be, at any time.
func (h *history) check() {
	h.t.Helper()
	for name, text := range h.files {
		if data, err := os.ReadFile(filepath.Join(h.f.Repo, name)); err != nil || string(data) != text {
			h.t.Errorf("%s of the user is %q, not %q: %v", name, data, text, err)
		}
	}
	// Each commit that the branch ever stood at is the user's, or passes the check.
	for commit := range strings.FieldsSeq(h.git("log", "-g", "--format=%H", h.target, "--")) {
		if h.seen[commit] {
			continue
		}
		h.seen[commit] = true
		facts := h.git("show", "-s", "--format=%s %(trailers:key=Agency-Run,valueonly)", commit)
		ours := !strings.HasPrefix(facts, "user-") && commit != h.first
		if ours && strings.Contains("\n"+h.git("ls-tree", "--name-only", commit), "\nbad-") {
			h.t.Errorf("%s was at %.12s, %s, which does not pass", h.target, commit, facts)
		}
	}
	h.git("merge-base", "--is-ancestor", h.first, h.target)
	landed := strings.Fields(h.git("log", "--format=%(trailers:key=Agency-Run,valueonly)", h.first+".."+h.target))
	slices.Sort(landed)
	if n := len(slices.Compact(slices.Clone(landed))); n != len(landed) {
		h.t.Errorf("%s has a run more than once: %v", h.target, landed)
	}
	if h.t.Failed() {
		h.fail()
	}
}

// await waits for a condition, and tells what was done when that is in vain.
func (h *history) await(what string, met func() bool) {
	h.t.Helper()
	for deadline := time.Now().Add(time.Minute); !met(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			h.t.Errorf("waited in vain for %s", what)
			h.fail()
		}
	}
}

func (h *history) fail() {
	h.t.Helper()
	h.t.Fatalf("make crash-queue N=1 SEED=%s\n%s\n\n%s\n%s\n%s\nthe log:\n%s", filepath.Base(h.t.Name()), strings.Join(slices.Compact(h.did), "\n"),
		h.f.Command("", "git", "log", "--graph", "--oneline", "--decorate", "--all", "-40").Stdout,
		h.f.Command("", "git", "status", "--porcelain").Stdout, h.f.Command("", "find", ".git", "-name", "*.lock").Stdout, h.log())
}

// entry returns the newest entry of a run; nil when there is none, or no daemon tells.
func (h *history) entry(name string) *agency.QueueEntry {
	var shown struct {
		Entries []struct {
			Entry agency.QueueEntry `json:"entry"`
		} `json:"entries"`
	}
	if err := h.data(&shown, "queue", "show", name); err != nil || len(shown.Entries) == 0 {
		return nil
	}
	return &shown.Entries[len(shown.Entries)-1].Entry
}

// end undoes what is in the way, and waits until all that was added has left the queue: what passes
// has landed, what does not is blamed, and nothing else.
func (h *history) end() {
	_ = os.Remove(h.path("killpoint"))
	_ = os.Remove(h.path("gitkill"))
	if h.files["shared.txt"] != "" {
		h.await("the user to give the draft up", func() bool { // git refuses while agency lands something there
			if h.f.Command("", "git", "checkout", "-q", "--", "shared.txt").Exit == 0 {
				return true
			}
			h.f.Agency("queue", "ls") // a daemon takes away the locks of one that was killed
			return false
		})
		delete(h.files, "shared.txt")
	}
	h.mend()
	h.await("the queue to go on", func() bool { return h.try("queue", "resume", "--into", h.target) })
	for _, name := range h.runs {
		if h.added[name] {
			for deadline := time.Now().Add(3 * time.Minute); !h.left(name); time.Sleep(50 * time.Millisecond) {
				if time.Now().After(deadline) {
					h.t.Errorf("%s does not leave the queue: %+v\n%s", name, h.entry(name), h.f.Agency("queue", "ls").Stdout)
					h.fail()
				}
			}
		}
	}
	h.check()
	h.landings()
	h.also = (&landing{w: h.world}).locks // of a git that still works, perhaps
	if wrong := append(h.rest(false), h.database()...); len(wrong) > 0 {
		h.t.Error(strings.Join(wrong, "\n"))
	}
	want := "M notes.txt\n?? loose.txt"
	if status := h.git("status", "--porcelain", "--untracked-files=all"); status != want {
		h.t.Errorf("the user has\n%s\nin the checkout, not\n%s", status, want)
	}
	if h.t.Failed() {
		h.fail()
	}
}

// left does what the user is asked to do about an entry, and reports whether it has left the queue.
func (h *history) left(name string) bool {
	e := h.entry(name)
	if e == nil {
		return false
	}
	bad := h.f.Command("", "git", "cat-file", "-e", h.run(name).Branch+":bad-"+name).Exit == 0
	switch e.State {
	case agency.EntryLanded, agency.EntryDropped:
		if bad && e.State == agency.EntryLanded {
			h.t.Errorf("%s landed, and does not pass", name)
		}
		return true
	case agency.EntryFailed:
		if !bad {
			h.t.Errorf("%s is blamed, and passes: %s", name, e.Reason)
		}
		return true
	case agency.EntryHeld:
		if h.ended(name) {
			h.solve(name, e.Source)
			h.try("queue", "resume", name)
		}
	case agency.EntryConflict:
		// An agent that has committed since is asked again if that is not enough.
		if e.Asked != agency.AskedNot && h.ended(name) && e.Source == h.git("rev-parse", h.run(name).Branch) {
			h.solve(name, e.Source)
		}
	case agency.EntryQueued, agency.EntryChecking, agency.EntryReady, agency.EntryLanding: // its turn comes
	case agency.EntryFixing: // its agent changes its work
	}
	return false
}

// ended reports whether the agent of a run has ended. Until then the user lets it solve its
// conflict: two merges in one worktree spoil each other.
func (h *history) ended(name string) bool { return h.run(name).final() }

// solve merges the branch into the work of a run, with what both have, once for the same work.
func (h *history) solve(name, source string) {
	if h.solved[name] == source {
		return
	}
	h.solved[name] = source
	const script = `cd "$1"; git merge -q -m solved "$2" || { sed -i '/^[<=>]\{7\}/d' shared.txt; git commit -qam solved; }`
	r := h.f.Command("", "sh", "-c", script, "solve", h.run(name).Worktree, h.target)
	h.did = append(h.did, fmt.Sprintf("solve %s: %d %s%s", name, r.Exit, r.Stdout, r.Stderr))
}

// landings checks each landing that the branch has: all that its source changed is in it. Of the file
// that all of them write, this is the run's own line: an agent that solves a conflict drops those of
// others.
func (h *history) landings() {
	landed, of := map[string]bool{}, map[string]string{}
	for _, name := range h.runs {
		if e := h.entry(name); e != nil {
			of[string(e.Landing)] = name
		}
	}
	for ref := range strings.FieldsSeq(h.git("for-each-ref", "--format=%(refname)", "refs/agency/landings/*/candidate")) {
		id := filepath.Base(filepath.Dir(ref))
		if h.f.Command("", "git", "merge-base", "--is-ancestor", ref, h.target).Exit != 0 {
			h.t.Errorf("the landing %s is not in %s", id, h.target)
			continue
		}
		landed[id] = true
		source := strings.TrimSuffix(ref, "candidate") + "source"
		for file := range strings.FieldsSeq(h.git("diff", "--name-only", h.first, source)) {
			if file == "bad-user" {
				continue // the user's, who takes it back, perhaps after the work had merged it
			}
			is := h.git("show", ref+":"+file)
			for line := range strings.Lines(h.git("show", source+":"+file)) {
				if file == "shared.txt" && !strings.HasSuffix(strings.TrimSpace(line), of[id]) {
					continue
				}
				if !strings.Contains(is, strings.TrimSpace(line)) {
					h.t.Errorf("the landing %s lacks %q of %s", id, line, file)
				}
			}
			if file != "shared.txt" && h.f.Command("", "git", "cat-file", "-e", h.target+":"+file).Exit != 0 {
				h.t.Errorf("%s of the landing %s is missing", file, id)
			}
		}
	}
	for _, name := range h.runs {
		e := h.entry(name)
		has := h.f.Command("", "git", "cat-file", "-e", h.target+":"+name+".txt").Exit == 0
		if says := e != nil && e.State == agency.EntryLanded; says != has {
			h.t.Errorf("%s is %+v, and in %s: %v", name, e, h.target, has)
		}
		if e != nil && e.State == agency.EntryLanded && !landed[string(e.Landing)] {
			h.t.Errorf("%s landed by %q, which %s does not have", name, e.Landing, h.target)
		}
	}
}
