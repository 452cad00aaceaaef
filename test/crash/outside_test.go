package crash_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"agency"
	"agency/internal/sqlite"
	"agency/test/fixture"
)

// This file inspects a world without agency: the process table, tmux, git, the files, and a copy of
// the database.

// record is the content of a copy of the database.
type record struct {
	runs     []agency.Run
	events   []agency.Event
	sessions []agency.Session
	agents   map[agency.SessionID][]agency.SessionAgent // of unsettled sessions
}

// memory holds the findings of earlier checks that must still hold.
type memory struct {
	events []agency.Event
	final  map[string]string // states of attempts that have ended
	gone   map[string]bool   // runs that are removed
	work   map[string]bool   // runs whose agent has written its work; true once the work was found saved
	rests  int
}

// restLimit is how long a world may take to settle.
const restLimit = 60 * time.Second

// rested waits until nothing is wrong, and returns what is still wrong at the end of the time.
func (l *life) rested() []string {
	if l.past.final == nil {
		l.past.final, l.past.gone, l.past.work = map[string]string{}, map[string]bool{}, map[string]bool{}
	}
	l.past.rests++
	l.note("rest")
	for deadline := time.Now().Add(restLimit); ; time.Sleep(100 * time.Millisecond) {
		wrong, final := l.outside()
		if len(wrong) == 0 {
			l.discard()
		}
		if len(wrong) == 0 || final || time.Now().After(deadline) {
			return wrong
		}
	}
}

// outside returns what is wrong, and whether that is final.
func (l *life) outside() (wrong []string, final bool) {
	l.mu.Lock()
	wrong = append(wrong, l.wrong...)
	l.mu.Unlock()
	if len(wrong) > 0 {
		return wrong, true
	}
	seen := l.scene()
	if len(seen.daemons) == 0 {
		if r := l.f.Agency("daemon", "start"); strings.Contains(r.Stderr, "E_DB_MISSING") {
			return l.bringBack(r.Stderr)
		} else if r.Exit != 0 {
			return []string{"daemon start: " + r.Stdout + r.Stderr}, false
		}
		return []string{"there was no daemon"}, false
	}
	if len(seen.gits) == 0 {
		wrong = append(wrong, l.unlockGit()...)
	}
	rec, err := l.record()
	if err != nil {
		return []string{err.Error()}, false
	}
	views := make([]runView, len(rec.runs))
	for i := range rec.runs {
		views[i] = viewOf(&rec.runs[i])
	}
	for _, w := range l.compare(views, seen) {
		if !l.filled || !strings.HasSuffix(w, noExitRecord) { // the wrapper could not write it
			wrong = append(wrong, w)
		}
	}
	if l.rebuilt && strings.Contains(strings.Join(wrong, "\n"), belongsToNoRun) {
		l.tidy()
	}
	wrong = append(wrong, checkEvents(views, rec.events)...)
	wrong = append(wrong, l.unsettled(rec)...)
	wrong = append(wrong, l.torn(views)...)
	lost := append(l.forgotten(rec), l.lost(views)...)
	if l.past.rests%8 == 0 && len(wrong) == 0 {
		lost = append(lost, l.fsck()...)
	}
	return append(wrong, lost...), false
}

// viewOf returns a run of the database as ls would show it.
func viewOf(r *agency.Run) runView {
	return runView{
		ID: string(r.ID), Name: r.Name, State: string(r.Attempt.State), Attempt: r.Attempt.Number, ErrorCode: string(r.Attempt.ErrorCode), Error: r.Attempt.Error,
		Branch: r.Branch, Worktree: r.Worktree, Dir: r.Dir, RemovedAt: r.RemovedAt,
	}
}

// record reads a copy of the database. A copy that is torn because a daemon writes is an error.
func (l *life) record() (*record, error) {
	dir, err := os.MkdirTemp(l.f.Root, "copy")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "agency.db")
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(filepath.Join(l.f.Data, "agency.db") + suffix)
		if errors.Is(err, fs.ErrNotExist) && suffix != "" {
			continue
		}
		if err == nil {
			err = os.WriteFile(path+suffix, data, 0o600)
		}
		if err != nil {
			return nil, err
		}
	}
	ctx := context.Background()
	store, err := sqlite.Open(ctx, path, time.Now)
	if err != nil {
		return nil, err
	}
	defer func() { _ = store.Close() }()
	var rec record
	if err := store.Check(ctx); err != nil {
		return nil, err
	}
	if rec.runs, err = store.Runs(ctx, agency.Filter{Removed: true}); err != nil {
		return nil, err
	}
	if rec.events, err = store.Events(ctx, 0, "", 0); err != nil {
		return nil, err
	}
	if rec.sessions, err = store.Sessions(ctx, agency.SessionFilter{}); err != nil {
		return nil, err
	}
	rec.agents = map[agency.SessionID][]agency.SessionAgent{}
	for i := range rec.sessions {
		if s := &rec.sessions[i]; !s.Status.Final() {
			if rec.agents[s.ID], err = store.SessionAgents(ctx, s.ID); err != nil {
				return nil, err
			}
		}
	}
	return &rec, nil
}

// unsettled returns the sessions that are not settled although all of their agents end by
// themselves.
func (l *life) unsettled(rec *record) []string {
	wrong := []string{}
	for i := range rec.sessions {
		if s := &rec.sessions[i]; !s.Status.Final() && s.Paused == "" && !s.External {
			for j := range rec.agents[s.ID] {
				a := &rec.agents[s.ID][j]
				if strings.Contains(a.Error, "agency trust, then agency session resume") {
					l.trustAgain(s.ID)
				}
				wrong = append(wrong, fmt.Sprintf("agent %s of session %s is %s: %+v", a.ID, s.ID, a.Status, *a))
			}
		}
	}
	return wrong
}

// torn returns the views of runs that cannot be read, or that belong to another run.
func (l *life) torn(runs []runView) []string {
	wrong := []string{}
	for i := range runs {
		r := &runs[i]
		for _, name := range []string{"meta.json", "state.json"} {
			data, err := os.ReadFile(filepath.Join(r.Dir, name))
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil || !json.Valid(data) || name == "meta.json" && !strings.Contains(string(data), r.ID) {
				wrong = append(wrong, fmt.Sprintf("%s of %s: %v, %.200q", name, r.ID, err, data))
			}
			if name == "state.json" && r.final() && strings.Contains(string(data), `"ACTIVE"`) {
				wrong = append(wrong, fmt.Sprintf("%s is %s: %s", r.Name, r.State, data))
			}
		}
	}
	return wrong
}

// forgotten returns the earlier findings, and answers to clients, that no longer hold.
func (l *life) forgotten(rec *record) []string {
	wrong, past := []string{}, &l.past
	if was := past.changed(rec.events); was != nil && l.losable {
		l.note("the record was lost from event %d on", was.Seq)
		l.rebuilt = true              // by one of the clients, perhaps
		past.gone = map[string]bool{} // the folder of a run may not yet record its removal
	} else if was != nil {
		wrong = append(wrong, fmt.Sprintf("event %d was %s of %q", was.Seq, was.Type, was.RunID))
	}
	if len(wrong) == 0 {
		past.events = rec.events
	}
	handles := map[string]bool{}
	for i := range rec.runs {
		r := &rec.runs[i]
		handles[r.Handle] = true
		attempt := fmt.Sprintf("%s attempt %d", r.ID, r.Attempt.Number)
		if was := past.final[attempt]; was != "" && was != string(r.Attempt.State) {
			wrong = append(wrong, fmt.Sprintf("%s was %s and is %s", attempt, was, r.Attempt.State))
		}
		if r.Attempt.State.Final() {
			past.final[attempt] = string(r.Attempt.State)
		}
		if past.gone[string(r.ID)] && r.RemovedAt == nil {
			wrong = append(wrong, fmt.Sprintf("%s was removed and is not", r.ID))
		}
		past.gone[string(r.ID)] = past.gone[string(r.ID)] || r.RemovedAt != nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for handle := range l.made {
		if !handles[handle] {
			wrong = append(wrong, "a client got the run "+handle+", which does not exist")
		}
	}
	return wrong
}

// changed returns the first event of an earlier check that is missing now, or nil.
func (m *memory) changed(now []agency.Event) *agency.Event {
	for i := range m.events {
		was := &m.events[i]
		if i >= len(now) || now[i].Type != was.Type || now[i].RunID != was.RunID || now[i].Attempt != was.Attempt {
			return was
		}
	}
	return nil
}

// lost returns the work of agents that is neither where they wrote it nor saved.
func (l *life) lost(runs []runView) []string {
	refs := strings.Fields(l.f.Command("", "git", "for-each-ref", "--format=%(refname)", "refs/agency", "refs/heads").Stdout)
	wrong := []string{}
	l.mu.Lock()
	for ref := range l.saved {
		if !has(refs, ref) {
			wrong = append(wrong, "a client got "+ref+", which does not exist")
		}
	}
	l.mu.Unlock()
	for i := range runs {
		r := &runs[i]
		if data, err := os.ReadFile(filepath.Join(r.Worktree, "work.txt")); err == nil && string(data) == "precious\n" {
			l.past.work[r.ID] = false
			continue
		}
		if saved, wrote := l.past.work[r.ID]; !wrote || saved {
			continue
		}
		for _, ref := range refs {
			if ref == "refs/heads/"+r.Branch || strings.HasPrefix(ref, agency.SnapshotRefs(agency.RunID(r.ID))) {
				if l.f.Command("", "git", "show", ref+":work.txt").Stdout == "precious\n" {
					l.past.work[r.ID] = true
				}
			}
		}
		if !l.past.work[r.ID] {
			history := l.f.Command("", "sh", "-c", `git log --format='%h %an %s' --stat refs/heads/"$0" -- ; git log --format='%h %s' --stat --glob="refs/agency/snapshots/$1"`,
				r.Branch, r.ID).Stdout
			wrong = append(wrong, fmt.Sprintf("the work of %s (%s, %s) is lost: %s", r.Name, r.ID, r.State, history))
		}
	}
	return wrong
}

// fsck returns what git reports as missing for a ref.
func (l *life) fsck() []string {
	if r := l.f.Command("", "git", "fsck", "--connectivity-only", "--no-dangling"); r.Exit != 0 {
		return []string{"git fsck: " + r.Stdout + r.Stderr}
	}
	return nil
}

// act runs a command that changes something, again where its daemon went away: one whose lock was
// deleted in the last round may notice it only now, and ends.
func (l *life) act(args ...string) fixture.Result {
	got := l.f.Agency(args...)
	if l.unlocked && strings.Contains(got.Stderr, "E_DAEMON_LOST") {
		got = l.f.Agency(args...)
	}
	return got
}

// end stops and removes everything, and returns what is left.
func (l *life) end() []string {
	l.note("the end")
	rec, err := l.record()
	if err != nil {
		return []string{err.Error()}
	}
	wrong := []string{}
	for i := range rec.sessions {
		if s := &rec.sessions[i]; !s.Status.Final() {
			cancel := []string{"session", "cancel", string(s.ID)}
			if s.External {
				cancel = []string{"session", "update", string(s.ID), "cancel"}
			}
			if got := l.act(cancel...); got.Exit != 0 {
				wrong = append(wrong, "session cancel "+string(s.ID)+": "+got.Stderr)
			}
		}
	}
	for i := range rec.runs {
		r := &rec.runs[i]
		if !r.Attempt.State.Final() {
			got := l.act("stop", string(r.ID))
			if got.Exit != 0 && !strings.Contains(got.Stderr, "E_INVALID_STATE") { // it ended by itself meanwhile
				wrong = append(wrong, "stop "+string(r.ID)+": "+got.Stderr)
			}
		}
		if r.RemovedAt == nil {
			if got := l.act("rm", string(r.ID)); got.Exit != 0 {
				wrong = append(wrong, "rm "+string(r.ID)+": "+got.Stderr)
			}
		}
	}
	if wrong = append(wrong, l.rested()...); len(wrong) > 0 {
		return wrong
	}
	wrong = append(l.doctor(), l.fsck()...)
	wrong = append(wrong, l.database()...)
	for deadline := time.Now().Add(restLimit); ; time.Sleep(50 * time.Millisecond) {
		left := l.scene()
		for _, pid := range left.tmux {
			delete(left.all, pid)
		}
		if len(left.all) == 0 {
			return wrong
		}
		if time.Now().After(deadline) {
			return append(wrong, fmt.Sprintf("processes are left: %v", left.all))
		}
	}
}
