package supervisor

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
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
// last, so both write what the record says now. The files can be rebuilt at any time, so a failure is only logged.
func (s *Supervisor) writeViews(ctx context.Context, changed *agency.Run) {
	ctx = context.WithoutCancel(ctx) // the record has changed, whoever still waits for it
	unlock, err := s.lockViews(ctx, changed.ID)
	if err != nil {
		return
	}
	defer unlock()
	r, err := s.Store.Run(ctx, changed.ID)
	if err != nil {
		s.Log.Warn("read run for its files", "run", changed.ID, "err", err)
		return
	}
	s.mu.Lock()
	if l := s.live[r.ID]; l != nil {
		l.views++
	}
	s.mu.Unlock()
	data, err := indented(r)
	if err == nil {
		err = file.WriteAtomic(filepath.Join(r.Dir, "meta.json"), data)
	}
	if err != nil {
		s.Log.Warn("write meta.json", "run", r.ID, "err", err)
	}
	s.writeState(r)
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
		s.writeState(r)
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

// heartbeatLimit is how long a wrapper that lives may be silent. It touches its heartbeat every five seconds; one that does
// not is suspended, or waits for a disk.
const heartbeatLimit = time.Minute

// writeState says nothing of the heartbeat's that the record does not: it can make what runs STALLED, and nothing alive.
func (s *Supervisor) writeState(r *agency.Run) {
	a := &r.Attempt
	state := runState{Status: "ACTIVE", Attempt: a.Number}
	if info, err := os.Lstat(filepath.Join(attemptDir(r.Dir, a.Number), "heartbeat")); err == nil {
		beat := info.ModTime().UTC()
		state.LastHeartbeat = &beat
	}
	switch a.State {
	case agency.Completed:
		state.Status = "DONE"
	case agency.Failed, agency.Killed:
		state.Status = "CRASHED"
	case agency.Queued, agency.Running:
		silent := state.LastHeartbeat != nil && s.Elapsed(*state.LastHeartbeat) > heartbeatLimit
		if silent || s.Derive(r).Label == agency.Stalled {
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
	if err == nil {
		err = file.WriteAtomic(filepath.Join(r.Dir, "state.json"), data)
	}
	if err != nil {
		s.Log.Warn("write state.json", "run", r.ID, "err", err)
	}
}

func indented(v any) ([]byte, error) {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return append(data, '\n'), nil
}
