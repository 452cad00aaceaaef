package scheduler

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"agency"
	"agency/internal/file"
)

// envLimit is the largest environment that is read back, in bytes.
const envLimit = 8 << 20

// The environment of a session's starter holds secrets and is needed as long as agents start. It is
// stored apart from the record, readable by the owner alone, and deleted when the session has
// settled.

func (s *Scheduler) dir(id agency.SessionID) string {
	return filepath.Join(s.Home, "sessions", string(id))
}

func (s *Scheduler) envPath(id agency.SessionID) string { return filepath.Join(s.dir(id), "env.json") }

func (s *Scheduler) writeEnv(id agency.SessionID, env []string) error {
	if err := os.MkdirAll(s.dir(id), 0o700); err != nil {
		return fmt.Errorf("create %s: %w", s.dir(id), err)
	}
	// The token identifies the starter; the agents have tokens of their own.
	kept := agency.Environ(env).Without("AGENCY_TOKEN")
	data, err := json.Marshal(kept)
	if err != nil {
		return fmt.Errorf("encode the environment: %w", err)
	}
	return file.WriteDurable(s.envPath(id), data)
}

func (s *Scheduler) readEnv(id agency.SessionID) ([]string, error) {
	data, err := file.ReadRegular(s.envPath(id), envLimit)
	if err != nil {
		return nil, err
	}
	var env agency.Environ
	if err := json.Unmarshal(data, &env); err != nil {
		return nil, fmt.Errorf("read %s: %w", s.envPath(id), err)
	}
	return env, nil
}

func (s *Scheduler) removeEnv(id agency.SessionID) error { return os.RemoveAll(s.dir(id)) }

// tidy removes the environments that no session needs, or that never got a session.
func (s *Scheduler) tidy(live []agency.Session) error {
	root := filepath.Join(s.Home, "sessions")
	if err := os.MkdirAll(root, 0o700); err != nil {
		return fmt.Errorf("create %s: %w", root, err)
	}
	dirs, err := os.ReadDir(root)
	if err != nil {
		return fmt.Errorf("read %s: %w", root, err)
	}
	for _, dir := range dirs {
		id, err := agency.ParseSessionID(dir.Name())
		if err != nil || slices.ContainsFunc(live, func(s agency.Session) bool { return s.ID == id }) {
			continue
		}
		if err := s.removeEnv(id); err != nil {
			s.Log.Warn("remove the environment of a session", "session", id, "err", err)
		}
	}
	return nil
}
