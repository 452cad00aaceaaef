package file

import (
	"os/exec"
	"path/filepath"
)

// FindProgram returns the first program called name in the absolute folders of a PATH. It skips
// relative folders, because their meaning depends on a folder with untrusted content.
func FindProgram(path, name string) (program string, found bool) {
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		if program, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return program, true
		}
	}
	return "", false
}
