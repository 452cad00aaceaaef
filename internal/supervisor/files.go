package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"agency"
	"agency/internal/file"
)

// makeFiles writes the run directory.
func (s *Supervisor) makeFiles(p *creation) error {
	r := p.run
	for _, dir := range []string{r.Dir, filepath.Join(r.Dir, "artifacts"), filepath.Join(attemptDir(r.Dir, 1), "logs")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return asFileError(err)
		}
	}
	spec, err := materialisedSpec(p)
	if err != nil {
		return err
	}
	inputs, err := indented(p.inputs)
	if err != nil {
		return err
	}
	// The prompt is nowhere else; what the others say is in the store.
	if err := file.WriteDurable(filepath.Join(r.Dir, "prompt.md"), p.prompt); err != nil {
		return asFileError(err)
	}
	for name, data := range map[string][]byte{"spec.json": spec, "inputs.json": inputs, "meta.yaml": metaYAML(r, p.prompt)} {
		if err := file.WriteAtomic(filepath.Join(r.Dir, name), data); err != nil {
			return asFileError(err)
		}
	}
	if err := s.writeFiles(r); err != nil { // a record that is lost from here on comes back with this run
		return asFileError(err)
	}
	return s.linkAttempt(r)
}

// linkAttempt points the run directory's logs and records to the newest attempt.
func (s *Supervisor) linkAttempt(r *agency.Run) error {
	for _, name := range []string{"logs", "exit_code.txt", "runner_done.json"} {
		target := filepath.Join("attempts", fmt.Sprint(r.Attempt.Number), name)
		link := filepath.Join(r.Dir, name)
		temp := link + ".new"
		if err := os.Remove(temp); err != nil && !os.IsNotExist(err) {
			return asFileError(err)
		}
		if err := os.Symlink(target, temp); err != nil {
			return asFileError(err)
		}
		if err := os.Rename(temp, link); err != nil {
			return asFileError(err)
		}
	}
	return nil
}

// materialisedSpec is the spec as it will be followed: the prompt is the file in the worktree, nothing is left to defaults.
func materialisedSpec(p *creation) ([]byte, error) {
	spec := p.req.Spec
	spec.Repo = p.run.Repo.Root
	spec.Branch = p.run.Branch
	spec.Prompt = agency.SpecPrompt{Path: agency.PromptFile}
	spec.Env = names(spec.Env)
	return indented(spec)
}

// names keeps the names of NAME=value and drops the values, which may be secrets.
func names(env []string) []string {
	list := make([]string, 0, len(env))
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		list = append(list, name)
	}
	return list
}

// quote writes a text as JSON, which is YAML too once the few characters are escaped that YAML does not allow as they are.
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

// metaYAML is the request, written once and never again. Every value is quoted as JSON, which is YAML too.
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

// writeViews rewrites the files that mirror the record of a run that changed. Of two who changed it the first may come here
// last, so both write what the record says now. What cannot be written is logged, and tried again by each rescan; the next daemon
// finds it by state.json, which is written last.
func (s *Supervisor) writeViews(ctx context.Context, changed *agency.Run) {
	ctx = context.WithoutCancel(ctx) // the record has changed, whoever still waits for it
	unlock, err := s.lockViews(ctx, changed.ID)
	if err != nil {
		return
	}
	defer unlock()
	r, err := s.Records.Run(ctx, changed.ID)
	if err == nil {
		s.mu.Lock()
		if l := s.live[r.ID]; l != nil {
			l.views++
		}
		s.mu.Unlock()
		err = s.writeFiles(r)
	}
	if err != nil {
		s.Log.Warn("write the files of a run", "run", changed.ID, "err", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(s.unwritten, changed.ID); err != nil && !errors.Is(err, fs.ErrNotExist) { // the folder of one that is undone is gone
		s.unwritten[changed.ID] = true
	}
}

func (s *Supervisor) writeFiles(r *agency.Run) error {
	data, err := indented(r)
	if err != nil {
		return err
	}
	if err := file.WriteAtomic(filepath.Join(r.Dir, "meta.json"), data); err != nil {
		return err
	}
	return s.writeState(r)
}

// writeUnwritten tries again to write the files that could not be written.
func (s *Supervisor) writeUnwritten() {
	s.mu.Lock()
	ids := slices.Collect(maps.Keys(s.unwritten))
	s.mu.Unlock()
	for _, id := range ids {
		s.writeViews(s.ctx, &agency.Run{ID: id})
	}
}

// isBehind reports whether state.json of an ended run tells of an attempt that goes on: it could not be written when that ended.
func isBehind(r *agency.Run) bool {
	if !r.Attempt.State.Final() {
		return false // it is written with each rescan
	}
	data, err := file.ReadRegular(filepath.Join(r.Dir, "state.json"), 1<<20)
	var state runState
	if err == nil {
		err = json.Unmarshal(data, &state)
	}
	return err != nil || state.Attempt != r.Attempt.Number || state.Status != endState(&r.Attempt)
}

// endState is what state.json calls the end of an attempt.
func endState(a *agency.Attempt) string {
	if a.State == agency.Completed {
		return "DONE"
	}
	return "CRASHED"
}

// refreshState brings into state.json what changes without the record: the heartbeat, and a stall. r was read after seen; if
// the views were written since then, or the attempt is over, they say something newer.
func (s *Supervisor) refreshState(seen *liveRun, r *agency.Run) {
	unlock, err := s.lockViews(s.ctx, r.ID)
	if err != nil {
		return
	}
	defer unlock()
	if now, ok := s.liveCopy(r.ID); ok && now.attempt == seen.attempt && now.views == seen.views {
		if err := s.writeState(r); err != nil {
			s.Log.Warn("write state.json", "run", r.ID, "err", err)
		}
	}
}

// removeFiles removes a run's directory. A rescan that writes into it meanwhile would keep it there.
func (s *Supervisor) removeFiles(ctx context.Context, r *agency.Run) error {
	unlock, err := s.lockViews(ctx, r.ID)
	if err != nil {
		return err
	}
	defer unlock()
	return os.RemoveAll(r.Dir)
}

// lockViews keeps others from the files that mirror the record of a run.
func (s *Supervisor) lockViews(ctx context.Context, id agency.RunID) (unlock func(), err error) {
	return s.locks.lock(ctx, "views "+string(id))
}

// runState is the content of state.json.
type runState struct {
	Status        string     `json:"status"` // ACTIVE, DONE, CRASHED, STALLED
	PID           *int       `json:"pid"`
	SessionID     *string    `json:"session_id"`
	LastHeartbeat *time.Time `json:"last_heartbeat"`
	Error         *string    `json:"error"`
	Attempt       int        `json:"attempt"`
}

// writeState says nothing of the heartbeat's that the record does not: it can make what runs STALLED, and nothing alive.
func (s *Supervisor) writeState(r *agency.Run) error {
	a := &r.Attempt
	state := runState{Status: "ACTIVE", Attempt: a.Number}
	if beat := beatOf(r.Dir, a.Number).UTC(); !beat.IsZero() {
		state.LastHeartbeat = &beat
	}
	switch a.State {
	case agency.Completed, agency.Failed, agency.Killed:
		state.Status = endState(a)
	case agency.Queued, agency.Running:
		if s.Derive(r).Label == agency.Stalled || !s.silentSince(r).IsZero() {
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
	data, err := indented(state)
	if err != nil {
		return err
	}
	return file.WriteAtomic(filepath.Join(r.Dir, "state.json"), data)
}

func indented(v any) ([]byte, error) {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return append(data, '\n'), nil
}
