package supervisor_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"agency"
)

// A later attempt that continues a conversation, and whose agent counts all of it, reports the
// tokens of the earlier ones again.
func TestFactsCountAConversationOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, p := w.started("fix-login")
		uses := func(p *wrapper, input int64) {
			w.tell(p, agency.Evidence{Signal: agency.SignalSession, Conversation: "c-1"},
				agency.Evidence{Signal: agency.SignalUsage, Whole: true, Usage: &agency.Usage{InputTokens: &input}})
			w.watcher.hints <- filepath.Join(p.dir, agency.EventsFile)
			synctest.Wait()
		}
		uses(p, 200)
		p.mustEnd(t, agency.Exit{ExitCode: 1, EndedBy: agency.EndedByRunner})
		var again *wrapper
		w.tmux.OnStart = func(l agency.Launch) error { again = w.wrap(l); return again.begin() }
		if _, err := w.sup.ResumeRun(t.Context(), w.resumeRequest("fix-login")); err != nil {
			t.Fatal(err)
		}
		uses(again, 300)
		if err := os.RemoveAll(r.Worktree); err != nil { // what git reports does not matter here
			t.Fatal(err)
		}
		facts, err := w.sup.Query.Result(t.Context(), r.ID)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(agency.Usage{InputTokens: new(int64(300))}, facts.Usage); diff != "" {
			t.Errorf("usage (-want +got):\n%s", diff)
		}
	})
}

// A result that cannot be counted because the machine is short of something is an error, so that the
// caller counts again. Any other failure is what the result reports.
func TestFactsWhileShort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, _ := w.started("fix-login")
		fails := func(err error) {
			w.git.mu.Lock()
			defer w.git.mu.Unlock()
			w.git.inspectErr = err
		}
		fails(fmt.Errorf("run git: %w", syscall.EMFILE))
		if facts, err := w.sup.Query.Result(t.Context(), r.ID); !errors.Is(err, syscall.EMFILE) {
			t.Errorf("without a file to open: got %+v, %v", facts, err)
		}
		fails(agency.Errorf(agency.CodeNotGitRepo, "it is not a worktree"))
		if facts, err := w.sup.Query.Result(t.Context(), r.ID); err != nil || facts.Problem != "it is not a worktree" {
			t.Errorf("without a worktree: got %+v, %v", facts, err)
		}
	})
}
