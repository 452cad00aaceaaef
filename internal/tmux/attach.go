package tmux

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// AttachArgv is the command line that brings a user to a session; the user's process executes it in its terminal.
// callerEnv is that process's environment, which decides the form:
//
//   - in a pane of this very server, switch-client: a terminal cannot be attached inside itself;
//   - anywhere else, attach-session. In a pane of another server the caller must remove TMUX from its environment
//     first, or tmux refuses to nest.
//
// The program and the socket are absolute paths, so that the caller's PATH and TMUX_TMPDIR cannot lead elsewhere; when
// tmux is not installed the program is the bare word tmux. The session is not looked up.
func (t *Tmux) AttachArgv(name string, callerEnv []string) []string {
	program, err := t.find()
	if err != nil {
		program = "tmux"
	}
	socket := t.socketPath()
	command := "attach-session"
	// TMUX is "socket path,server pid,session index".
	if inside, _, _ := strings.Cut(lookup(callerEnv, "TMUX"), ","); inside != "" && sameFile(inside, socket) {
		command = "switch-client"
	}
	return []string{program, "-S", socket, command, "-t", "=" + name}
}

// socketPath is where the server listens, by the rule of tmux itself: TMUX_TMPDIR where that is a directory, else /tmp.
func (t *Tmux) socketPath() string {
	if filepath.IsAbs(t.socket) {
		return t.socket
	}
	dir := "/tmp"
	for _, candidate := range []string{lookup(t.environ(), "TMUX_TMPDIR"), dir} {
		if real, err := filepath.EvalSymlinks(candidate); err == nil && filepath.IsAbs(real) {
			dir = real
			break
		}
	}
	name := t.socket
	if name == "" {
		name = "default"
	}
	return filepath.Join(dir, "tmux-"+strconv.Itoa(os.Getuid()), name)
}

// sameFile compares two sockets, also where links make their paths differ.
func sameFile(a, b string) bool {
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}
