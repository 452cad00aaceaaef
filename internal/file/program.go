package file

import (
	"os/exec"
	"path/filepath"
)

// FindProgram is the first program called name in the absolute folders of a PATH. What a relative one means depends on a folder that
// somebody else filled, so it is left out.
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
