package opencode

import (
	"cmp"
	"path/filepath"

	"agency"
)

// state returns where OpenCode keeps its state. Its conversations, caches and the repositories of
// its snapshots are in folders of all projects, from which it runs programs: a run has its own.
func state(env agency.Environ, _ string) agency.SandboxState {
	home := env.Lookup("HOME")
	of := func(variable, fallback string) string {
		return filepath.Join(cmp.Or(env.Lookup(variable), filepath.Join(home, fallback)), "opencode")
	}
	data := of("XDG_DATA_HOME", ".local/share")
	s := agency.SandboxState{
		Own:   []string{data, of("XDG_STATE_HOME", ".local/state"), of("XDG_CACHE_HOME", ".cache")},
		Read:  []string{filepath.Join(data, "auth.json"), of("XDG_CONFIG_HOME", ".config")},
		Env:   []string{"OPENCODE_*", "XDG_*_HOME"},
		Hosts: []string{"opencode.ai", "models.dev"},
	}
	if config := env.Lookup("OPENCODE_CONFIG"); config != "" {
		s.Read = append(s.Read, config)
	}
	return s
}
