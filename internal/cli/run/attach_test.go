package run_test

import (
	"os"
	"path/filepath"
	"testing"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/clitest"
)

const attachedRun = agency.RunID("r_01JD4QJ5T0Y7R8V6W3N2M1K0HG")

// Whether attach moves a client or starts one depends on the pane that it runs in.
func TestAttachArgv(t *testing.T) {
	t.Parallel()
	socket := clitest.OwnSocket(t)
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
			b := clitest.New(t)
			b.App.Env = append(b.App.Env, "TMUX="+test.tmux, "PATH="+os.Getenv("PATH"))
			b.Serve(clitest.Always(api.AttachRunResponse{RunID: attachedRun, Socket: socket}, nil))
			b.Run("attach", "x", "--json")
			data := b.Envelope().Data.(map[string]any)
			argv := data["argv"].([]any)[1:]
			for i, want := range []string{"-S", socket, test.want, "-t", "=agency_" + string(attachedRun)} {
				if argv[i] != want {
					t.Errorf("argv is %q, want %q at %d", argv, want, i)
				}
			}
		})
	}
}

// attach runs no command of a daemon's answer, and uses no tmux server that is not the user's.
func TestAttachRefuses(t *testing.T) {
	t.Parallel()
	socket := clitest.OwnSocket(t)
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
			b := clitest.New(t)
			b.App.Env = append(b.App.Env, "PATH="+os.Getenv("PATH"))
			b.Serve(clitest.Always(resp, nil))
			if b.Run("attach", "x", "--json"); b.Envelope().OK {
				t.Errorf("got %s", b.Out.String())
			}
		})
	}
}
