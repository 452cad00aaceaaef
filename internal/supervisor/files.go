package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"agency"
	"agency/internal/file"
	"agency/internal/supervisor/keyed"
	"agency/internal/supervisor/observe"
)

// materialisedSpec returns the spec as it will be executed: the prompt is the file in the worktree,
// and every default is filled in.
func materialisedSpec(p *NewRun) ([]byte, error) {
	spec := p.Spec
	spec.Repo = p.run.Repo.Root
	spec.Branch = p.run.Branch
	spec.Prompt = agency.SpecPrompt{Path: agency.PromptFile}
	spec.Env = names(spec.Env)
	return indented(spec)
}

// names returns the names of NAME=value entries without the values, which may be secrets.
func names(env []string) []string {
	list := make([]string, 0, len(env))
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		list = append(list, name)
	}
	return list
}

// quote returns a text as JSON, which is also YAML once the few characters that YAML does not allow
// are escaped.
func quote(s string) string {
	data, _ := json.Marshal(s) // a string always marshals
	var b strings.Builder
	for _, r := range string(data) {
		if r == 0x7f || (r >= 0x80 && r <= 0x9f) || r == 0xfffe || r == 0xffff {
			_, _ = fmt.Fprintf(&b, "\\u%04x", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// metaYAML returns the request, which is written once and never changed. Every value is quoted as
// JSON, which is also YAML.
func metaYAML(r *agency.Run, prompt []byte) []byte {
	text := []rune(strings.ToValidUTF8(string(prompt[:min(len(prompt), 4000)]), "�"))
	model := "null"
	if r.Model != "" {
		model = quote(r.Model)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "run_id: %s\n", quote(r.Handle))
	fmt.Fprintf(&b, "id: %s\n", quote(string(r.ID)))
	fmt.Fprintf(&b, "task_type: %s\n", quote(r.Type))
	fmt.Fprintf(&b, "task_description: %s\n", quote(string(text[:min(len(text), 1000)])))
	fmt.Fprintf(&b, "started_at: %s\n", quote(r.Attempt.CreatedAt.UTC().Format(time.RFC3339)))
	fmt.Fprintf(&b, "model: %s\n", model)
	fmt.Fprintf(&b, "config_hash: %s\n", quote(r.ConfigHash))
	return []byte(b.String())
}

// views are the files that mirror the record: the files in run directories, and a repository's
// folder of links to its runs.
type views struct {
	store    *Records
	live     *Live
	observer *observe.Observer
	projects *Projects
	home     string // data root
	log      *slog.Logger

	locks keyed.Locks // on the files of one run, or the links of one repository

	mu        sync.Mutex            // taken last
	unwritten map[agency.RunID]bool // runs whose files could not be written
}

// write rewrites the files that mirror the record of a changed run. Two concurrent changes can get
// here in either order, so each writes what the record holds now. A failure is logged and retried
// by each rescan; the next daemon detects it from state.json, which is written last.
func (v *views) write(ctx context.Context, changed *agency.Run) {
	ctx = context.WithoutCancel(ctx) // the record has changed, even if the caller is gone
	unlock, err := v.lock(ctx, changed.ID)
	if err != nil {
		return
	}
	defer unlock()
	r, err := v.store.Run(ctx, changed.ID)
	if err == nil {
		v.live.change(r.ID, func(l *live) { l.views++ })
		err = v.writeFiles(r)
	}
	if err != nil {
		v.log.Warn("write the files of a run", "run", changed.ID, "err", err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if delete(v.unwritten, changed.ID); err != nil && !errors.Is(err, fs.ErrNotExist) { // the folder of an undone run is gone
		v.unwritten[changed.ID] = true
	}
}

func (v *views) writeFiles(r *agency.Run) error {
	data, err := indented(r)
	if err != nil {
		return err
	}
	if err := file.WriteAtomic(filepath.Join(r.Dir, "meta.json"), data); err != nil {
		return err
	}
	return v.writeState(r, v.state(r))
}

// writeUnwritten writes again the files that could not be written.
func (v *views) writeUnwritten(ctx context.Context) {
	v.mu.Lock()
	ids := slices.Collect(maps.Keys(v.unwritten))
	v.mu.Unlock()
	for _, id := range ids {
		v.write(ctx, &agency.Run{ID: id})
	}
}

// isBehind reports whether state.json of an ended run still shows a live attempt, because it could
// not be written at the end.
func isBehind(r *agency.Run) bool {
	if !r.Attempt.State.Final() {
		return false // each rescan writes it
	}
	data, err := file.ReadRegular(statePath(r), 1<<20)
	if errors.Is(err, fs.ErrNotExist) && isGone(r.Dir) {
		return false // there is no folder to write it into
	}
	var state runState
	if err == nil {
		err = json.Unmarshal(data, &state)
	}
	return err != nil || state.Attempt != r.Attempt.Number || state.Status != endState(&r.Attempt)
}

// endState returns the name of an attempt's end in state.json.
func endState(a *agency.Attempt) string {
	if a.State == agency.Completed {
		return "DONE"
	}
	return "CRASHED"
}

// refresh updates what changes in state.json without a change of the record: the heartbeat, and a
// stall. r was read after seen; if the views were written since then, or the attempt is over, they
// are newer and stay.
func (v *views) refresh(ctx context.Context, seen *live, r *agency.Run) {
	unlock, err := v.lock(ctx, r.ID)
	if err != nil {
		return
	}
	defer unlock()
	now, ok := v.live.get(r.ID)
	if !ok || now.attempt != seen.attempt || now.views != seen.views {
		return
	}
	path, state := statePath(r), v.state(r)
	if at := time.Now(); now.state.isAlmost(state) && os.Chtimes(path, at, at) == nil {
		return
	}
	if err := v.writeState(r, state); err != nil {
		v.log.Warn("write state.json", "run", r.ID, "err", err)
	}
}

// removeFiles removes a run's directory. The lock keeps a rescan from writing into it meanwhile.
func (v *views) removeFiles(ctx context.Context, r *agency.Run) error {
	unlock, err := v.lock(ctx, r.ID)
	if err != nil {
		return err
	}
	defer unlock()
	return os.RemoveAll(r.Dir)
}

// lock locks the files that mirror the record of a run.
func (v *views) lock(ctx context.Context, id agency.RunID) (unlock func(), err error) {
	return v.locks.Lock(ctx, "views "+string(id))
}

// runState is the content of state.json.
type runState struct {
	Status        string     `json:"status"` // ACTIVE, DONE, CRASHED, STALLED
	PID           *int       `json:"pid"`
	SessionID     *string    `json:"session_id"`
	LastHeartbeat *time.Time `json:"last_heartbeat"` // of a live run, at most beatShown older than the newest
	Error         *string    `json:"error"`
	Attempt       int        `json:"attempt"`
}

// beatShown is how old the heartbeat in state.json of a live run may get. Writing it in each rescan
// would be most of what a daemon at rest does.
const beatShown = 30 * time.Second

// isAlmost reports whether a state that was written differs too little from a newer one to write that.
// A nil state always differs.
func (old *runState) isAlmost(state *runState) bool {
	if old == nil || old.LastHeartbeat == nil || state.LastHeartbeat == nil || state.LastHeartbeat.Sub(*old.LastHeartbeat).Abs() >= beatShown {
		return false
	}
	same := *state
	same.LastHeartbeat = old.LastHeartbeat
	return reflect.DeepEqual(*old, same)
}

func statePath(r *agency.Run) string { return filepath.Join(r.Dir, "state.json") }

// state returns the content of state.json for a run. A heartbeat that is not in the record can make a
// live run STALLED, but never a dead one alive.
func (v *views) state(r *agency.Run) *runState {
	a := &r.Attempt
	state := &runState{Status: "ACTIVE", Attempt: a.Number}
	if beat := observe.BeatOf(r.Dir, a.Number).UTC(); !beat.IsZero() {
		state.LastHeartbeat = &beat
	}
	switch a.State {
	case agency.Completed, agency.Failed, agency.Killed:
		state.Status = endState(a)
	case agency.Queued, agency.Running:
		if v.observer.Derive(r).Label == agency.Stalled || !v.observer.IdleSince(r).IsZero() {
			state.Status = "STALLED"
		}
	}
	if a.RunnerProcess != nil && !a.State.Final() {
		state.PID = &a.RunnerProcess.PID
	}
	if a.ConversationID != "" {
		state.SessionID = &a.ConversationID
	}
	if reason := a.Error; reason != "" || a.State == agency.Killed {
		if reason == "" {
			reason = "killed"
		}
		state.Error = &reason
	}
	return state
}

func (v *views) writeState(r *agency.Run, state *runState) error {
	data, err := indented(state)
	if err == nil {
		err = file.WriteAtomic(statePath(r), data)
	}
	if err != nil {
		state = nil
	}
	v.live.change(r.ID, func(l *live) { l.state = state })
	return err
}

func indented(v any) ([]byte, error) {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return append(data, '\n'), nil
}
