package harness

import (
	"os"
	"path/filepath"

	"agency"
)

// Login returns where a login of an agent shows to a caller with this environment: the name of a
// variable that is set, or the path of a file that exists. found is empty when there is none, which
// proves nothing: a keychain, or the agent's own settings, may hold a login too. known is false for
// a runner that needs none.
func Login(kind agency.RunnerKind, env agency.Environ) (found string, known bool) {
	login := of(kind).Login
	known = len(login.Variables) > 0 || login.File != ""
	for _, name := range login.Variables {
		if env.Lookup(name) != "" {
			return name, known
		}
	}
	folder := ""
	if login.Folder != "" {
		folder = env.Lookup(login.Folder)
	}
	if home := env.Lookup("HOME"); folder == "" && home != "" {
		folder = filepath.Join(home, login.Home)
	}
	path := filepath.Join(folder, login.File)
	if login.File == "" || !filepath.IsAbs(path) {
		return "", known
	}
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return "", known
	}
	return path, known
}
