package cli_test

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"agency"
	"agency/internal/api"
)

const attachedRun = agency.RunID("r_01JD4QJ5T0Y7R8V6W3N2M1K0HG")

// ownSocket is a socket of this user, as that of a tmux server.
func ownSocket(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "agc")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "tmux")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return path
}

// Whether attach moves the client or makes one depends on the pane that it stands in.
func TestAttachArgv(t *testing.T) {
	t.Parallel()
	socket := ownSocket(t)
	link := filepath.Join(filepath.Dir(socket), "link")
	if err := os.Symlink(filepath.Dir(socket), link); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct{ tmux, want string }{
		"outside":         {"", "attach-session"},
		"here":            {socket + ",123,0", "switch-client"},
		"here, by a link": {filepath.Join(link, "tmux") + ",123,0", "switch-client"},
		"another server":  {socket + "2,123,0", "attach-session"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.app.Env = append(b.app.Env, "TMUX="+test.tmux, "PATH="+os.Getenv("PATH"))
			b.serve(always(api.AttachRunResponse{RunID: attachedRun, Socket: socket}, nil))
			b.run("attach", "x", "--json")
			data := b.envelope().Data.(map[string]any)
			argv := data["argv"].([]any)[1:]
			for i, want := range []string{"-S", socket, test.want, "-t", "=agency_" + string(attachedRun)} {
				if argv[i] != want {
					t.Errorf("argv is %q, want %q at %d", argv, want, i)
				}
			}
		})
	}
}

// What a daemon answers is no command, and no way to a tmux server that is not the user's.
func TestAttachRefuses(t *testing.T) {
	t.Parallel()
	socket := ownSocket(t)
	file := filepath.Join(filepath.Dir(socket), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(filepath.Dir(socket), "link")
	if err := os.Symlink(socket, link); err != nil {
		t.Fatal(err)
	}
	for name, resp := range map[string]api.AttachRunResponse{
		"no run":          {RunID: "r_1; id", Socket: socket},
		"a relative path": {RunID: attachedRun, Socket: "tmux"},
		"not clean":       {RunID: attachedRun, Socket: filepath.Dir(socket) + "/./tmux"},
		"a file":          {RunID: attachedRun, Socket: file},
		"a link":          {RunID: attachedRun, Socket: link},
		"nothing":         {RunID: attachedRun, Socket: socket + "2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.app.Env = append(b.app.Env, "PATH="+os.Getenv("PATH"))
			b.serve(always(resp, nil))
			if b.run("attach", "x", "--json"); b.envelope().OK {
				t.Errorf("got %s", b.out.String())
			}
		})
	}
}
