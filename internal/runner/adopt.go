package runner

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"agency"
	"agency/internal/file"
	"agency/internal/limit"
)

// AdoptFile holds the launch of an attempt for a wrapper that replaces a killed one. The token and the
// environment are not in it: the new wrapper reads them from the environment of the holder, which only this
// user can read.
const AdoptFile = "adopt.json"

// writeAdopt writes the launch for the next wrapper.
func writeAdopt(launch agency.Launch) error {
	launch.Token, launch.Env, launch.Outer, launch.Adopts, launch.Waits, launch.Trace = "", nil, nil, true, false, false
	data, err := json.Marshal(launch)
	if err != nil {
		return fmt.Errorf("encode the launch for the next wrapper: %w", err)
	}
	return file.WriteAtomic(filepath.Join(launch.AttemptDir, AdoptFile), data)
}

// takeOver completes the launch of a wrapper that adopts a living runner, and returns the record of
// the runner's start.
func takeOver(launch *agency.Launch) (*agency.Start, error) {
	start, err := ReadStart(launch.AttemptDir)
	if err == nil && start == nil {
		err = errors.New("it has no record of its start")
	}
	if err != nil {
		return nil, fmt.Errorf("adopt the agent: %w", err)
	}
	alive, err := Alive(start.Runner)
	if err == nil && !alive {
		err = errors.New("it has ended")
	}
	if err != nil {
		return nil, fmt.Errorf("adopt the agent: %w", err)
	}
	data, err := environ(start.Runner.PID)
	if err != nil {
		return nil, fmt.Errorf("adopt the agent: %w", err)
	}
	for kv := range bytes.SplitSeq(data, []byte{0}) {
		if bytes.ContainsRune(kv, '=') {
			launch.Env = append(launch.Env, string(kv))
		}
	}
	launch.Token, launch.Env = launch.Env.Lookup(heldToken), launch.Env.Without(heldToken)
	if launch.Token == "" {
		return nil, errors.New("adopt the agent: its environment cannot be read")
	}
	return start, nil
}

// adopt continues with a runner whose wrapper was killed.
func (w *wrapper) adopt() error {
	from, err := readCheckpoint(w.launch.AttemptDir)
	if err != nil {
		return err
	}
	logs, err := resumeLogs(filepath.Join(w.launch.AttemptDir, logsDir), w.launch.LogBytes, from)
	if err != nil {
		return fmt.Errorf("open the logs: %w", err)
	}
	logs.lost = &w.out.lost
	w.out.logs = logs
	reserve(w.launch.AttemptDir, exitCodeFile, exitFile)
	if w.relay != nil {
		if err := serveRelay(w.relay, w.launch.Relay); err != nil {
			return err
		}
	}
	limits, err := limit.Resume(&w.launch)
	if err != nil {
		return err
	}
	self, pane := w.start.Wrapper, w.start.Pane
	w.start = *w.adopted
	w.start.Wrapper, w.start.Pane, w.start.Limits = self, pane, limits.Use()
	w.out.pane = newPane(w.stdout)
	w.showBefore(from)
	if err := w.openSpeech(from); err != nil {
		return err
	}
	w.limits = limits // from here on, the end of the attempt removes them
	if w.launch.TimeLimit > 0 {
		w.launch.TimeLimit = max(w.launch.TimeLimit-time.Since(w.start.StartedAt), time.Second)
	}
	close(w.started)
	if w.network.proxy != nil {
		go w.network.serveHeld()
	}
	go awaitHeld(w.family, w.exited)
	go w.converse()
	w.client.started(w.start, nil)
	return nil
}

// heldEvery is how often a wrapper looks at a runner that is not its child.
const heldEvery = 100 * time.Millisecond

// awaitHeld waits for the end of a runner that is not a child of the wrapper.
func awaitHeld(f *family, exited chan<- status) {
	for {
		if alive, err := Alive(*f.runner); err == nil && !alive {
			break
		}
		time.Sleep(heldEvery)
	}
	tree, err := f.all()
	exited <- status{alone: err == nil && len(tree) == 0}
}

// exitOf returns the exit status of a runner in the mode protocol, which its holder has kept. While the
// system fails to read it, exitOf tries again, for the same time as for a slow disk.
func (w *wrapper) exitOf(st status) (status, error) {
	h, err := readHeld(w.launch.AttemptDir)
	for begin := time.Now(); err != nil && w.adopted != nil && time.Since(begin) < takeLimit; {
		time.Sleep(heldEvery)
		h, err = readHeld(w.launch.AttemptDir)
	}
	switch {
	case h != nil:
		st.wait = h.Status
		return st, nil
	case w.adopted != nil && err != nil:
		return st, fmt.Errorf("the exit status of the runner cannot be read: %w", err)
	case w.adopted != nil:
		return st, errors.New("the runner disappeared: what held its exit status was killed")
	default:
		return st, nil
	}
}

// isAdopt reports whether a launch file is that of a wrapper that adopts: it holds no secret, and
// stays for the next one.
func isAdopt(path string) bool { return strings.HasSuffix(path, "/"+AdoptFile) }
