package supervisor_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"agency"
	"agency/internal/spool"
)

func (w *world) tell(p *wrapper, evidence ...agency.Evidence) {
	w.t.Helper()
	for i := range evidence {
		if evidence[i].Source == "" {
			evidence[i].Source = agency.FromHook
		}
		evidence[i].At = time.Now()
	}
	if err := spool.Append(filepath.Join(p.dir, agency.EventsFile), evidence...); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) label(id agency.RunID) agency.Label {
	w.t.Helper()
	return w.sup.Observer.Derive(w.run(id)).Label
}

// Evidence of an agent's hooks is read at the file event, at the latest at the next rescan, and
// after a restart of the daemon.
func TestEvidence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, p := w.started("fix-login")
		path := filepath.Join(p.dir, agency.EventsFile)
		w.tell(p, agency.Evidence{Signal: agency.SignalSession, Conversation: "c-1", Model: "m"}, agency.Evidence{Signal: agency.SignalPrompt})
		w.watcher.hints <- path
		synctest.Wait()
		if got := w.run(r.ID).Attempt; got.ConversationID != "c-1" || w.label(r.ID) != agency.Working {
			t.Errorf("after a prompt: %q, %s", got.ConversationID, w.label(r.ID))
		}
		w.tell(p, agency.Evidence{Signal: agency.SignalAsked, Kind: agency.AsksPermission, ID: "1", Tool: "Bash", Text: "make"})
		time.Sleep(rescan)
		synctest.Wait()
		if got := w.sup.Observer.Derive(w.run(r.ID)); got.Label != agency.NeedsInput || got.Summary != "may it use Bash? make" {
			t.Errorf("after a rescan: %+v", got)
		}
		w.restart()
		if got := w.label(r.ID); got != agency.NeedsInput {
			t.Errorf("after a restart: %s", got)
		}
		w.tell(p, agency.Evidence{Signal: agency.SignalAnswered, ID: "1"}, agency.Evidence{Signal: agency.SignalTurnEnded, Text: "done"})
		if err := p.connect(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := w.label(r.ID); got != agency.Waiting {
			t.Errorf("at its turn's end: %s", got)
		}
		n := w.count(r.ID, agency.AgentStateChanged)
		w.tell(p, agency.Evidence{Signal: agency.SignalUnknown, Event: "NewThing"})
		w.watcher.hints <- path
		synctest.Wait()
		if again := w.count(r.ID, agency.AgentStateChanged); again != n {
			t.Errorf("%d events for what means nothing", again-n)
		}
		w.tell(p, agency.Evidence{Signal: agency.SignalRefused, Event: "fs/read", ID: "5"}, agency.Evidence{Signal: agency.SignalRefused, Event: "fs/read", ID: "6"})
		w.watcher.hints <- path
		synctest.Wait()
		if refused, changed := w.count(r.ID, agency.RequestRefused), w.count(r.ID, agency.AgentStateChanged); refused != 1 || changed != n {
			t.Errorf("%d events for what was refused, and %d for its state", refused, changed-n)
		}
	})
}

// A client that a change of the record wakes finds the agent's state as it was recorded, and after
// a change that failed, as it was before.
func TestStateAtItsEvent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, p := w.started("fix-login")
		var seen []agency.Label
		w.store.OnChangedRun = func(r *agency.Run) {
			if r.Attempt.AgentState.Turn == agency.TurnWorking {
				seen = append(seen, w.label(r.ID))
			}
		}
		w.tell(p, agency.Evidence{Signal: agency.SignalPrompt}, agency.Evidence{Signal: agency.SignalAsked, Kind: agency.AsksQuestion, ID: "1", Text: "Which colour?"})
		w.sup.Observer.ReadEvidence(t.Context(), r.ID)
		if !slices.Equal(seen, []agency.Label{agency.NeedsInput}) {
			t.Errorf("at the event of a question: %q", seen)
		}
		w.store.ChangeRunErr = func() error { return errors.New("no space left") }
		w.tell(p, agency.Evidence{Signal: agency.SignalAnswered, ID: "1"})
		w.sup.Observer.ReadEvidence(t.Context(), r.ID)
		if got := w.label(r.ID); got != agency.NeedsInput {
			t.Errorf("after an answer that could not be recorded: %s", got)
		}
		w.store.ChangeRunErr = nil
		w.sup.Observer.ReadEvidence(t.Context(), r.ID)
		if got := w.label(r.ID); got != agency.Working {
			t.Errorf("after it was: %s", got)
		}
	})
}

// An agent's own file is read at a file event, and what it contains is kept with all other
// evidence.
func TestAgentsOwnFile(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		own := filepath.Join(t.TempDir(), "session.json")
		w.harness.FilesFunc = func(s *agency.AgentState) []string {
			if s.Transcript == "" {
				return nil
			}
			return []string{own}
		}
		w.harness.ReadFileFunc = func(path string, s *agency.AgentState) []agency.Evidence {
			data, err := os.ReadFile(path)
			if errors.Is(err, os.ErrNotExist) || string(data) == s.Sources[agency.FromSession].Event {
				return nil
			}
			return []agency.Evidence{{Source: agency.FromSession, Signal: agency.Signal(data), Event: string(data)}}
		}
		r, p := w.started("fix-login")
		w.tell(p, agency.Evidence{Signal: agency.SignalSession, Transcript: "/somewhere"}, agency.Evidence{Signal: agency.SignalPrompt})
		w.watcher.hints <- filepath.Join(p.dir, agency.EventsFile)
		synctest.Wait()
		mustWrite(t, own, string(agency.SignalInterrupted))
		w.watcher.hints <- own
		synctest.Wait()
		if got := w.sup.Observer.Derive(w.run(r.ID)); got.Label != agency.Waiting || got.Summary != "(interrupted)" || got.Decided != agency.DecidedBy(agency.FromSession) {
			t.Errorf("got %+v", got)
		}
		p.mustEnd(t, agency.Exit{EndedBy: agency.EndedByRunner})
		if got := w.watcher.watched(); len(got) != 0 {
			t.Errorf("still watched: %v", got)
		}
	})
}

// The folder of an agent's own file can be created after the file is reported.
func TestAgentsOwnFolderComesLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		own := filepath.Join(t.TempDir(), "session.json")
		w.watcher.missing = filepath.Dir(own)
		w.harness.FilesFunc = func(*agency.AgentState) []string { return []string{own} }
		w.harness.ReadFileFunc = func(string, *agency.AgentState) []agency.Evidence {
			return []agency.Evidence{{Source: agency.FromSession, Signal: agency.SignalInterrupted}}
		}
		r, p := w.started("fix-login")
		w.tell(p, agency.Evidence{Signal: agency.SignalPrompt})
		w.watcher.hints <- filepath.Join(p.dir, agency.EventsFile)
		synctest.Wait()
		if got := w.label(r.ID); got != agency.Working {
			t.Errorf("without the folder: got %s, want working", got)
		}
		w.watcher.mu.Lock()
		w.watcher.missing = ""
		w.watcher.mu.Unlock()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := w.label(r.ID); got != agency.Waiting {
			t.Errorf("with the folder: got %s, want waiting", got)
		}
		p.mustEnd(t, agency.Exit{EndedBy: agency.EndedByRunner})
		if got := w.watcher.watched(); len(got) != 0 {
			t.Errorf("still watched: %v", got)
		}
	})
}

// An agent that reports nothing is looked at once its terminal is still, and a message is not typed
// into a dialog.
func TestScreen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.harness.ScreenFunc = func(lines []string) []agency.Evidence {
			switch lines[0] {
			case "Do you trust?":
				return []agency.Evidence{{Signal: agency.SignalAsked, Kind: agency.AsksDialog, Text: "trust", Confidence: 0.9}}
			case "> ":
				return []agency.Evidence{{Signal: agency.SignalResting, Confidence: 0.5}}
			}
			return nil
		}
		r, p := w.started("fix-login")
		show := func(text string) {
			t.Helper()
			w.tmux.mu.Lock()
			w.tmux.Screen = text
			w.tmux.mu.Unlock()
			now := time.Now()
			if err := w.sup.Wrappers.Update(t.Context(), r.ID, 1, agency.WrapperUpdate{Output: &now}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second)
			synctest.Wait()
		}
		show("Do you trust?\n\n")
		if got := w.sup.Observer.Derive(w.run(r.ID)); got.Label != agency.NeedsInput || got.Summary != "trust" || got.Decided != agency.DecidedBy(agency.FromScreen) {
			t.Errorf("at a dialog: %+v", got)
		}
		if _, _, err := w.sup.Input.Send(t.Context(), r.Handle, "hello", ""); codeOf(err) != agency.CodeInvalidState {
			t.Errorf("a message into a dialog: %v", err)
		}
		show("> \n")
		if got := w.label(r.ID); got == agency.NeedsInput {
			t.Errorf("behind the dialog: %s", got)
		}
		if _, _, err := w.sup.Input.Send(t.Context(), r.Handle, "hello", ""); err != nil {
			t.Errorf("a message behind the dialog: %v", err)
		}
		w.tell(p, agency.Evidence{Signal: agency.SignalPrompt})
		w.watcher.hints <- filepath.Join(p.dir, agency.EventsFile)
		synctest.Wait()
		show("Do you trust?\n")
		if got := w.label(r.ID); got != agency.Working {
			t.Errorf("an agent that speaks for itself: %s", got)
		}
	})
}

// A report in the worktree counts once, whatever else the file contains.
func TestReports(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		r, _ := w.started("fix-login")
		path := filepath.Join(r.Worktree, agency.ReportsFile)
		mustWrite(t, path, `{"source":"hook","signal":"turn_ended","report":"help","text":"I am stuck"}`+"\n{\"source\":\"report\",")
		w.watcher.hints <- path
		synctest.Wait()
		got := w.sup.Observer.Derive(w.run(r.ID))
		if got.Label != agency.NeedsInput || got.Summary != "I am stuck" || got.Decided != agency.DecidedBy(agency.FromReport) {
			t.Errorf("got %+v", got)
		}
		if turn := w.run(r.ID).Attempt.AgentState.Turn; turn != agency.TurnUnknown {
			t.Errorf("a report ended the turn: %q", turn)
		}
		n := w.count(r.ID, agency.AgentStateChanged)
		w.watcher.hints <- path
		time.Sleep(rescan)
		synctest.Wait()
		if again := w.count(r.ID, agency.AgentStateChanged); again != n {
			t.Errorf("%d events for the same report", again-n)
		}
	})
}
