package crash_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agency"
	"agency/internal/sqlite"
)

// settleTime is how long the world may take to settle.
const settleTime = time.Minute

// rest waits until nothing is wrong, and returns what is still wrong at the end of the time.
func (w *world) rest(tmuxDied bool) []string {
	for deadline := time.Now().Add(settleTime); ; time.Sleep(50 * time.Millisecond) {
		wrong := w.violations(tmuxDied)
		if len(wrong) == 0 || time.Now().After(deadline) {
			return wrong
		}
	}
}

// violations returns what is wrong in a settled world, by agency's own answers and by inspection
// without it. tmuxDied excuses missing sessions.
func (w *world) violations(tmuxDied bool) []string {
	runs, err := w.runs()
	if err != nil {
		return []string{err.Error()}
	}
	wrong := w.compare(runs, w.scene())
	if !tmuxDied {
		for i := range runs {
			if runs[i].Name == "other" && runs[i].State != "running" && runs[i].RemovedAt == nil {
				wrong = append(wrong, fmt.Sprintf("the other run is %s: %s", runs[i].State, runs[i].Error))
			}
		}
	}
	if w.also != nil {
		wrong = append(wrong, w.also()...)
	}
	wrong = append(wrong, w.doctor()...)
	return append(wrong, w.events(runs)...)
}

// compare compares the record of runs with the process table, tmux, git and the files. It is the
// only place that defines what must hold.
func (w *world) compare(runs []runView, seen *scene) []string {
	wrong := []string{}
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	m := w.made()
	known := map[string]bool{}
	for i := range runs {
		r := &runs[i]
		known[r.ID], known[filepath.Base(r.Worktree)] = true, true
		wrong = append(wrong, m.wrongProcesses(r, seen)...)
		wrong = append(wrong, m.wrongFiles(r, runs)...)
	}
	for _, session := range m.sessions {
		if !known[strings.TrimPrefix(session, "agency_")] {
			say("the session %s"+belongsToNoRun, session)
		}
	}
	for _, branch := range m.branches {
		owned := strings.HasPrefix(branch, "agency/restored-") // from a snapshot, for the user
		for i := range runs {
			owned = owned || runs[i].Branch == branch
		}
		if !owned {
			say("the branch %s"+belongsToNoRun, branch)
		}
	}
	wrong = append(wrong, w.wrongStandbys(m, known)...)
	for _, pattern := range []string{"runs/*", "worktrees/*/*"} {
		paths, _ := filepath.Glob(filepath.Join(w.f.Data, pattern))
		for _, path := range paths {
			if id, _, _ := strings.Cut(filepath.Base(path), "."); !known[id] {
				say("%s"+belongsToNoRun, path)
			}
		}
	}
	locks, _ := filepath.Glob(filepath.Join(w.f.Data, "locks", "*"))
	for _, lock := range append(locks, filepath.Join(w.f.Data, "agencyd.start.lock")) {
		if !lockFree(lock) {
			say("%s is held", lock)
		}
	}
	if len(seen.daemons) != 1 {
		say("there are %d daemons: %v", len(seen.daemons), seen.daemons)
	}
	return wrong
}

// made is what tmux and git have of the runs.
type made struct {
	sessions  []string
	worktrees string // as git lists them
	branches  []string
	work      map[string]bool // branches at a commit of an agent, which an undo leaves
}

// made asks tmux and git.
func (w *world) made() *made {
	m := &made{
		sessions:  strings.Fields(w.f.Tmux("list-sessions", "-F", "#{session_name}").Stdout),
		worktrees: w.f.Command("", "git", "worktree", "list", "--porcelain").Stdout,
		branches:  []string{}, work: map[string]bool{},
	}
	for line := range strings.Lines(w.f.Command("", "git", "for-each-ref", "--format=%(refname:lstrip=2) %(authorname)", "refs/heads/agency").Stdout) {
		branch, author, _ := strings.Cut(strings.TrimSpace(line), " ")
		m.branches = append(m.branches, branch)
		m.work[branch] = author == "Scripted Agent"
	}
	return m
}

// wrongProcesses returns what is wrong with the processes of a run, given its state.
func (m *made) wrongProcesses(r *runView, seen *scene) []string {
	wrong := []string{}
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	session := has(m.sessions, "agency_"+r.ID)
	marked, wrapper := seen.marked[r.ID], seen.wrappers[r.ID]
	launches, _ := filepath.Glob(filepath.Join(r.Dir, "attempts", "*", "launch.json"))
	if len(launches) > 0 {
		say("%s (%s) has a launch file left: %v", r.Name, r.State, launches)
	}
	if r.Status == "removing" {
		say("%s is still being removed", r.Name)
	}
	switch r.State {
	case "queued":
		say("%s is still queued", r.Name)
	case "running":
		if len(wrapper) != 1 || len(marked) == 0 {
			say("%s is running with wrappers %v and processes %v", r.Name, wrapper, marked)
		}
		if !session {
			say("%s is running without a session", r.Name)
		}
	default:
		if len(wrapper) != 0 || len(marked) != 0 {
			say("%s is %s with wrappers %v and processes %v", r.Name, r.State, wrapper, marked)
		}
		if r.State == "killed" && session {
			say("%s was stopped and its session is there", r.Name)
		}
		wrong = append(wrong, exitDisagrees(r)...)
	}
	return wrong
}

// wrongFiles returns what is wrong with the folder, the worktree and the branch of one of the runs.
func (m *made) wrongFiles(r *runView, runs []runView) []string {
	wrong := []string{}
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	session := has(m.sessions, "agency_"+r.ID)
	_, dirErr := os.Lstat(r.Dir)
	_, worktreeErr := os.Lstat(r.Worktree)
	inGit := strings.Contains(m.worktrees, "/"+filepath.Base(r.Worktree)+"\n")
	switch {
	case r.RemovedAt != nil:
		if worktreeErr == nil || inGit || session {
			say("%s is removed: worktree on disk %v, in git %v, session %v", r.Name, worktreeErr == nil, inGit, session)
		}
		// A session that starts an agent again gives the next run the same branch.
		again := slices.ContainsFunc(runs, func(other runView) bool { return other.Branch == r.Branch && !isUndone(&other) })
		if isUndone(r) && has(m.branches, r.Branch) && !m.work[r.Branch] && !again {
			say("%s is undone and its branch is there", r.Name)
		}
	default:
		// An operation that interrupts a removal leaves a run that shows this, and that can be
		// removed again.
		if (worktreeErr == nil) != inGit && r.State == "running" || dirErr != nil {
			say("%s is kept: worktree %v, in git %v, folder %v", r.Name, worktreeErr, inGit, dirErr)
		}
	}
	return wrong
}

// wrongStandbys returns which standbys are not ready or belong to a run, and adds all to known.
func (w *world) wrongStandbys(m *made, known map[string]bool) []string {
	wrong := []string{}
	standbys, _ := filepath.Glob(filepath.Join(w.f.Data, "standby", "*", "*.json"))
	for _, path := range standbys {
		var s agency.Standby
		data, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(data, &s)
		}
		if err != nil || !s.Ready || known[s.ID] || !strings.Contains(m.worktrees, s.Worktree+"\nHEAD "+s.Commit+"\ndetached\n") {
			wrong = append(wrong, fmt.Sprintf("the standby %s is not ready, or is a run's, or not in git: %v %s", path, err, data))
		}
		known[s.ID] = true
	}
	return wrong
}

// isUndone reports whether the creation of a run was undone: the folder of a removed run stays.
func isUndone(r *runView) bool {
	_, err := os.Lstat(r.Dir)
	return r.RemovedAt != nil && err != nil
}

const belongsToNoRun = " belongs to no run"

const noExitRecord = " is completed without an exit record"

// exitDisagrees compares a final state with the wrapper's exit record.
func exitDisagrees(r *runView) []string {
	data, err := os.ReadFile(filepath.Join(r.Dir, "attempts", fmt.Sprint(r.Attempt), "runner_done.json"))
	if errors.Is(err, fs.ErrNotExist) {
		if r.State == "completed" {
			return []string{r.Name + noExitRecord}
		}
		return nil
	}
	var exit agency.Exit
	if err := json.Unmarshal(data, &exit); err != nil {
		return []string{fmt.Sprintf("%s: %v", r.Name, err)}
	}
	clean := exit.EndedBy == agency.EndedByRunner && exit.ExitCode == 0
	if r.State == "failed" && clean || r.State == "completed" && !clean {
		return []string{fmt.Sprintf("%s is %s, and its exit record says %s %d", r.Name, r.State, exit.EndedBy, exit.ExitCode)}
	}
	return nil
}

func (w *client) doctor() []string {
	var report struct {
		Checks []struct{ Name, Level, Text string } `json:"checks"`
	}
	if err := w.data(&report, "doctor"); err != nil {
		return []string{err.Error()}
	}
	wrong := []string{}
	for _, c := range report.Checks {
		if strings.HasPrefix(c.Name, "orphan ") && !strings.HasSuffix(c.Text, ".going") {
			wrong = append(wrong, "doctor: "+c.Name+" "+c.Text)
		}
	}
	return wrong
}

// events returns the events, checked against the runs.
func (w *client) events(runs []runView) []string {
	r := w.f.Agency("events", "--json")
	if r.Exit != 0 {
		return []string{"events: " + r.Stdout + r.Stderr}
	}
	events := []agency.Event{}
	for dec := json.NewDecoder(strings.NewReader(r.Stdout)); dec.More(); {
		var page struct {
			Data struct {
				Events []agency.Event `json:"events"`
			} `json:"data"`
		}
		if err := dec.Decode(&page); err != nil {
			return []string{"events: " + err.Error()}
		}
		events = append(events, page.Data.Events...)
	}
	return checkEvents(runs, events)
}

// checkEvents checks that the record of events has no gap, no duplicate, and no event after the end
// of a run.
func checkEvents(runs []runView, events []agency.Event) []string {
	wrong := []string{}
	type key struct {
		run     agency.RunID
		attempt int
		kind    agency.EventType
	}
	count, removed := map[key]int{}, map[agency.RunID]bool{}
	last := int64(0)
	for i := range events {
		e := &events[i]
		if e.Seq != last+1 {
			wrong = append(wrong, fmt.Sprintf("event %d follows %d", e.Seq, last))
		}
		last = e.Seq
		k := key{e.RunID, e.Attempt, e.Type}
		count[k]++
		switch e.Type {
		case agency.RunCreated, agency.RunRemoved, agency.RunUndone:
			k.attempt = 0
			fallthrough
		case agency.AttemptStarted, agency.AttemptEnded, agency.AttemptStopping, agency.AttemptCreated:
			if count[key{e.RunID, e.Attempt, e.Type}] > 1 {
				wrong = append(wrong, fmt.Sprintf("event %d is a second %s of %s attempt %d", e.Seq, e.Type, e.RunID, e.Attempt))
			}
			if removed[e.RunID] {
				wrong = append(wrong, fmt.Sprintf("event %d is %s after the removal of %s", e.Seq, e.Type, e.RunID))
			}
		default: // may occur any number of times
		}
		if e.Type == agency.AttemptStarted && count[key{e.RunID, e.Attempt, agency.AttemptEnded}] > 0 {
			wrong = append(wrong, fmt.Sprintf("event %d starts an attempt that has ended", e.Seq))
		}
		if e.Type == agency.RunRemoved || e.Type == agency.RunUndone {
			removed[e.RunID] = true
		}
	}
	if last == 0 {
		wrong = append(wrong, "there are no events")
	}
	for i := range runs {
		id, n := agency.RunID(runs[i].ID), runs[i].Attempt
		ends := count[key{id, n, agency.AttemptEnded}] + count[key{id, n, agency.RunUndone}]
		rebuilt := count[key{id, n, agency.RunRebuilt}] > 0 // its end may have been recorded before
		if runs[i].final() != (ends > 0) && !rebuilt {
			wrong = append(wrong, fmt.Sprintf("%s is %s, and %d events tell of its end", runs[i].Name, runs[i].State, ends))
		}
	}
	return wrong
}

// database stops the daemon and checks the whole file.
func (w *client) database() []string {
	if r := w.f.Agency("daemon", "stop"); r.Exit != 0 {
		return []string{"daemon stop: " + r.Stderr}
	}
	store, err := sqlite.Open(context.Background(), filepath.Join(w.f.Data, "agency.db"), time.Now)
	if err != nil {
		return []string{err.Error()}
	}
	if err := errors.Join(store.Check(context.Background()), store.Close()); err != nil {
		return []string{err.Error()}
	}
	return nil
}
