package crash_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// forgePoints are the points where the making of a pull request can be interrupted, in the order in
// which it reaches them.
var forgePoints = []string{"push.intended", "push.pushed", "push.recorded", "pr.made", "pr.recorded"}

// forgeSample lists the cells that every run of the tests covers.
var forgeSample = []string{"push.pushed/client", "push.recorded/daemon", "pr.made/client"}

// A push, and the making of a pull request, that is cut off is complete when it is repeated: the
// remote has the commits, the forge one pull request, and the record each once.
func TestPullRequestCutOff(t *testing.T) {
	t.Parallel()
	for _, point := range forgePoints {
		for _, v := range victims() {
			name := point + "/" + v.name
			if v.name != "client" && v.name != "daemon" || !whole && !slices.Contains(forgeSample, name) {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				w.forge()
				w.must("run", "--name", "target", "--headless", "--prompt", "write work.txt precious\ncommit work")
				w.must("wait", "target")
				w.hold(point, "pr", "target")
				pids := v.pids(w)
				w.kill(pids)
				w.awaitDeath(pids)
				w.release()
				w.awaitClient()
				w.must("pr", "target")
				if wrong := slices.Concat(w.pulled(), w.rest(false), w.database(), w.temporary()); len(wrong) > 0 {
					t.Errorf("%s\nthe log:\n%s", strings.Join(wrong, "\n"), w.log())
				}
			})
		}
	}
}

// temporary returns what is left in the folders for temporary files after another daemon started.
func (w *client) temporary() []string {
	w.t.Helper()
	w.must("daemon", "start")
	left := []string{}
	for _, dir := range []string{w.path("temporary"), filepath.Join(w.f.Data, "tmp")} {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			left = append(left, "left is "+filepath.Join(dir, e.Name()))
		}
	}
	return left
}

// A push outlives its daemon: the next one leaves alone what git pushes from.
func TestPushOutlivesDaemon(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.forge()
	w.must("run", "--name", "target", "--headless", "--prompt", "write work.txt precious\ncommit work")
	w.must("wait", "target")
	w.script("origin.git/hooks/pre-receive", "#!/bin/sh\ntouch "+w.path("pushing")+"\nwhile test -e "+w.path("pushing")+"; do sleep 0.02; done\n")
	w.start([]string{"push", "target"})
	w.await("the push", func() bool { _, err := os.Lstat(w.path("pushing")); return err == nil })
	w.killDaemons()
	w.must("ls")
	if err := os.Remove(w.path("pushing")); err != nil {
		t.Fatal(err)
	}
	w.awaitClient()
	if status := w.process.ProcessState.ExitCode(); status != 0 {
		t.Errorf("exit %d: %s", status, w.said())
	}
	w.must("daemon", "stop")
	if left := w.temporary(); len(left) > 0 {
		t.Error(left)
	}
}

// forge gives the repository a remote on a forge that needs no network, and the user a gh.
func (w *folder) forge() {
	w.t.Helper()
	program, err := os.Executable()
	if err == nil {
		err = os.Symlink(program, w.path("shim/gh"))
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.f.Env = append(w.f.Env, "FORGE_STATE="+w.path("forge.json"), "FORGE_REPO="+w.path("origin.git"), "TMPDIR="+w.path("temporary"))
	const script = `mkdir "$TMPDIR"
		git init -q --bare "$ROOT/origin.git"
		git remote add origin git@github.com:me/app.git
		git config --global "url.$ROOT/origin.git.insteadOf" git@github.com:me/app.git`
	if r := w.f.Command("", "sh", "-ec", script); r.Exit != 0 {
		w.t.Fatal(r.Stderr)
	}
}

// pulled returns what is wrong with the pull request of the target.
func (w *client) pulled() []string {
	wrong := []string{}
	var state struct {
		PRs []struct{ Head, Commit string } `json:"prs"`
	}
	data, err := os.ReadFile(w.path("forge.json"))
	if err == nil {
		err = json.Unmarshal(data, &state)
	}
	target := w.target()
	tip := strings.TrimSpace(w.f.Command("", "git", "rev-parse", target.Branch).Stdout)
	if err != nil || len(state.PRs) != 1 || state.PRs[0].Head != target.Branch || state.PRs[0].Commit != tip {
		wrong = append(wrong, "the forge has "+string(data))
	}
	if is := w.f.Command("", "git", "-C", filepath.Join(w.f.Root, "origin.git"), "rev-parse", target.Branch); strings.TrimSpace(is.Stdout) != tip {
		wrong = append(wrong, "the remote is at "+is.Stdout+is.Stderr)
	}
	events := w.f.Agency("events", "--json").Stdout
	for _, event := range []string{`"run.pushed"`, `"pr.changed"`} {
		if strings.Count(events, event) != 1 {
			wrong = append(wrong, event+" is not in the record once:\n"+events)
		}
	}
	return wrong
}
