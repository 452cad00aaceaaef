package harness_test

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"agency"
	"agency/internal/harness"
	"agency/test/fixture"
)

// writeScript writes an empty script, with the folders above it.
func writeScript(t *testing.T, path string, mode os.FileMode) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// oddFiles makes a folder, a FIFO, a link to a program and a link to itself.
func oddFiles(t *testing.T, root, program string) (folder, fifo, link, loop string) {
	t.Helper()
	folder, fifo = filepath.Join(root, "folder", "agent"), filepath.Join(root, "fifo")
	link, loop = filepath.Join(root, "link"), filepath.Join(root, "loop")
	for _, err := range []error{
		os.MkdirAll(folder, 0o700), syscall.Mkfifo(fifo, 0o755), os.Symlink(program, link), os.Symlink(loop, loop),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return folder, fifo, link, loop
}

// finds checks which program is found, or which error names want.
func finds(t *testing.T, exec, repo string, env []string, want string) {
	t.Helper()
	got, err := harness.FindExec(agency.Runner{Kind: "codex"}, exec, repo, env)
	if err == nil {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		return
	}
	if e := agency.AsError(err); e.Code != agency.CodeRunnerNotConfigured || !strings.Contains(e.Message, want) || !strings.Contains(e.Hint, "exec = ") {
		t.Errorf("got %q (%s, hint %q), want %q", e.Message, e.Code, e.Hint, want)
	}
}

func TestFindExec(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write := func(rel string, mode os.FileMode) string { return writeScript(t, filepath.Join(root, rel), mode) }
	agent := write("bin/agent", 0o755)
	later := write("later/agent", 0o755)
	own := write("home/tools/agent", 0o755)
	inRepo := write("repo/scripts/agent", 0o755)
	write("repo/agent", 0o755)
	plain := write("plain/agent", 0o644)
	folder, fifo, link, loop := oddFiles(t, root, agent)
	repo := filepath.Join(root, "repo")
	path := func(dirs ...string) []string {
		for i, dir := range dirs {
			if !filepath.IsAbs(dir) && dir != "" && dir != "." {
				dirs[i] = filepath.Join(root, dir)
			}
		}
		return []string{"PATH=/wrong", "PATH=" + strings.Join(dirs, ":"), "HOME=" + filepath.Join(root, "home")}
	}
	tests := []struct {
		name string
		exec string
		env  []string
		want string // a path, or else the text of the error
	}{
		{"by name", "agent", path("none", "bin", "later"), agent},
		{"the first in PATH", "agent", path("later", "bin"), later},
		{"past a folder and a plain file", "agent", path("folder", "plain", "bin"), agent},
		{"never from an empty or relative entry", "agent", path("", ".", "bin"), agent},
		{"only relative entries", "agent", path("", "."), "agent is not in PATH"},
		{"no PATH at all", "agent", nil, "agent is not in PATH"},
		{"another variable", "agent", []string{"XPATH=" + filepath.Join(root, "bin")}, "agent is not in PATH"},
		{"a plain file in PATH", "agent", path("plain"), plain + " is not executable"},
		{"a folder in PATH", "agent", path("folder"), folder + " is a directory"},
		{"absolute", agent, nil, agent},
		{"absolute and untidy", filepath.Dir(agent) + "/../bin//agent", nil, agent},
		{"a link to a program", link, nil, link},
		{"relative to the folder", "scripts/agent", path("bin"), inRepo},
		{"relative with a dot", "./scripts/agent", nil, inRepo},
		{"relative and missing", "./nothing", path("bin"), filepath.Join(repo, "nothing") + " does not exist"},
		{"below HOME", "~/tools/agent", path(), own},
		{"below HOME without one", "~/tools/agent", nil, `HOME is ""`},
		{"below a relative HOME", "~/tools/agent", []string{"HOME=x"}, `HOME is "x"`},
		{"not executable", plain, nil, plain + " is not executable"},
		{"a directory", folder, nil, folder + " is a directory"},
		{"a FIFO", fifo, nil, fifo + " is not a regular file"},
		{"a link to itself", loop, nil, loop + " cannot be read"},
		{"a NUL", "/bin/\x00sh", nil, "cannot be read"},
		{"a dot", ".", path("bin"), ". is not in PATH"},
		{"nothing", "", path("bin"), "no program"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			finds(t, tt.exec, repo, tt.env, tt.want)
		})
	}
}

func TestFindExecSeesThroughLaunchers(t *testing.T) {
	t.Parallel()
	platforms := map[string][2]string{
		"linux/amd64": {"linux-x64", "x86_64-unknown-linux-musl"}, "linux/arm64": {"linux-arm64", "aarch64-unknown-linux-musl"},
		"darwin/amd64": {"darwin-x64", "x86_64-apple-darwin"}, "darwin/arm64": {"darwin-arm64", "aarch64-apple-darwin"},
	}
	ours, ok := platforms[runtime.GOOS+"/"+runtime.GOARCH]
	if !ok {
		t.Fatalf("no platform of an agent is known for %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	const launcher = "lib/node_modules/@maker/agent/bin/agent.js"
	vendor := func(platform [2]string) string { return "vendor/" + platform[1] + "/bin/agent" }
	tests := []struct {
		name  string
		start string   // what is found in PATH
		files []string // executable ones
		want  string
	}{
		{"a sibling", launcher, []string{"lib/node_modules/@maker/agent-" + ours[0] + "/" + vendor(ours)}, ""},
		{"below", launcher, []string{"lib/node_modules/@maker/agent/node_modules/@maker/agent-" + ours[0] + "/" + vendor(ours)}, ""},
		{"in the package itself", launcher, []string{"lib/node_modules/@maker/agent/" + vendor(ours)}, ""},
		{"not there", launcher, nil, "bin/agent"},
		{"no launcher", "lib/agent/agent.js", []string{"lib/" + vendor(ours)}, "bin/agent"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			files := append([]string{tt.start}, tt.files...)
			for other, platform := range platforms {
				if other != runtime.GOOS+"/"+runtime.GOARCH {
					files = append(files, "lib/node_modules/@maker/agent-"+platform[0]+"/"+vendor(platform))
				}
			}
			for _, rel := range files {
				path := filepath.Join(root, rel)
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), fixture.WriteProgram(path, "#!/bin/sh\n")); err != nil {
					t.Fatal(err)
				}
			}
			bin := filepath.Join(root, "bin")
			if err := errors.Join(os.Mkdir(bin, 0o700), os.Symlink("../"+tt.start, filepath.Join(bin, "agent"))); err != nil {
				t.Fatal(err)
			}
			want := tt.want
			if want == "" {
				want = tt.files[0]
			}
			for _, exec := range []string{"agent", filepath.Join(bin, "agent")} {
				got, err := harness.FindExec(agency.Runner{Kind: "codex"}, exec, root, []string{"PATH=" + bin})
				if err != nil || got != filepath.Join(root, want) {
					t.Errorf("%s: got %s, %v, want %s", exec, got, err, filepath.Join(root, want))
				}
			}
		})
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, script string
		kind         agency.RunnerKind
		want         string
	}{
		{"a line", `[ "$1" = --version ] && echo "2.1.329 (Claude Code)"; echo more`, "claude_code", "2.1.329 (Claude Code)"},
		{"unsafe text", `printf '\n  \033[31mred\033[0m \342\200\256 x\a\377 \n'`, "codex", "[31mred[0m  x"},
		{"endless text", `yes yes | head -c 5000000 | tr -d '\n'`, "gemini", strings.Repeat("yes", 66) + "ye"},
		{"failure", `echo 1.0; exit 1`, "opencode", ""},
		{"only errors", `echo 1.0 >&2`, "opencode", ""},
		{"a shell is not asked", `echo 1.0`, agency.Shell, ""},
		{"a program of the user's is not asked", `echo 1.0`, agency.Custom, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "agent")
			if err := fixture.WriteProgram(path, "#!/bin/sh\n"+tt.script+"\n"); err != nil {
				t.Fatal(err)
			}
			if got := harness.Version(t.Context(), tt.kind, path); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestVersionEndsWithItsContext(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, fifo := filepath.Join(dir, "agent"), filepath.Join(dir, "fifo")
	// The child keeps standard output open, as the launchers of real agents do, and the FIFO for as
	// long as it lives.
	script := "#!/bin/sh\nexec 3>" + fifo + "\nsleep 60 &\nwait\n"
	if err := errors.Join(fixture.WriteProgram(path, script), syscall.Mkfifo(fifo, 0o600)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	version := make(chan string, 1)
	go func() { version <- harness.Version(ctx, "codex", path) }()
	started, err := os.Open(fifo) // returns when the program has opened its end
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = started.Close() }()
	cancel()
	if got := <-version; got != "" {
		t.Errorf("got %q from a program that says nothing", got)
	}
	if _, err := io.ReadAll(started); err != nil { // ends when no process holds the other end
		t.Error(err)
	}
}
