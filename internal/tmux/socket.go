package tmux

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"agency"
)

// Socket returns the path of the server's socket, as tmux itself computes it. The socket need not
// exist.
func (t *Tmux) Socket() string {
	if filepath.IsAbs(t.socket) {
		return t.socket
	}
	for _, dir := range []string{agency.Environ(t.environ()).Lookup("TMUX_TMPDIR"), "/tmp"} {
		if !filepath.IsAbs(dir) {
			continue
		}
		if dir, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(dir, fmt.Sprintf("tmux-%d", os.Getuid()), cmp.Or(t.socket, "default"))
		}
	}
	return ""
}
