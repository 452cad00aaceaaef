package run_test

import (
	"path/filepath"
	"testing"

	"agency/internal/api"
	"agency/internal/cli/clitest"
	"agency/test/fixture"
)

// The client builds the command of the agent's own terminal itself, from its own configuration, and
// joins at no socket that is not the user's.
func TestAttachNative(t *testing.T) {
	t.Parallel()
	socket := clitest.OwnSocket(t)
	program := filepath.Join(filepath.Dir(socket), "codex")
	if err := fixture.WriteProgram(program, "#!/bin/sh\n"); err != nil {
		t.Fatal(err)
	}
	good := api.JoinRunResponse{RunID: attachedRun, Runner: "codex", Dir: "/", Conversation: "01a21ef8-a2a9-7173-ab93-bae0226e9820", Socket: socket}
	for name, change := range map[string]func(*api.JoinRunResponse){
		"":                     func(*api.JoinRunResponse) {},
		"a file":               func(r *api.JoinRunResponse) { r.Socket = program },
		"a relative path":      func(r *api.JoinRunResponse) { r.Socket = "tmux" },
		"nothing":              func(r *api.JoinRunResponse) { r.Socket += "2" },
		"an option":            func(r *api.JoinRunResponse) { r.Conversation = "--last" },
		"an agent that cannot": func(r *api.JoinRunResponse) { r.Runner = "opencode" },
		"no agent":             func(r *api.JoinRunResponse) { r.Runner = "rm" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp := good
			change(&resp)
			b := clitest.New(t)
			b.App.Env = append(b.App.Env, "PATH="+filepath.Dir(program))
			b.Serve(clitest.Always(resp, nil))
			b.Run("attach", "x", "--native", "--json")
			if b.Envelope().OK != (name == "") {
				t.Fatalf("got %s", b.Out.String())
			}
			if name != "" {
				return
			}
			argv := b.Envelope().Data.(map[string]any)["argv"].([]any)
			for i, want := range []string{program, "resume", "--remote", "unix://" + socket, resp.Conversation} {
				if argv[i] != want {
					t.Errorf("argv is %q, want %q at %d", argv, want, i)
				}
			}
		})
	}
}
