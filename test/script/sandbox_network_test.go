package script_test

import (
	"encoding/json"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agency/test/fixture"
)

// An agent with --network allow tries its ways out; docs/ways-out.md has the table. What it was
// refused is in the record.
func TestSandboxNetwork(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bwrap"); err != nil {
		t.Skip("bubblewrap is not installed: make deps")
	}
	f := fixture.New(t, bin)
	tryFenced(t, f, map[string]any{"sandbox": "process"})
	for _, shown := range []struct{ command, want string }{
		{"explain fenced", "was refused example.com:443: it is not on the list of hosts"},
		{"events --run fenced", "host here.localhost:443"},
		{"show fenced", "hosts: "},
	} {
		if r := f.Agency(strings.Fields(shown.command)...); !strings.Contains(r.Stdout, shown.want) {
			t.Errorf("agency %s lacks %q:\n%s%s", shown.command, shown.want, r.Stdout, r.Stderr)
		}
	}
}

// An agent in a container tries the same, and finds the same.
func TestSandboxNetworkOfContainer(t *testing.T) {
	t.Parallel()
	f := withEngine(t)
	tryFenced(t, f, map[string]any{"sandbox": "container", "image": fixture.Image})
}

// tryFenced runs the agent fenced in a sandbox, and compares what it found with docs/ways-out.md.
func tryFenced(t *testing.T, f *fixture.Fixture, sandbox map[string]any) {
	t.Helper()
	runFenced(t, f, sandbox)
	docs, err := os.ReadFile("../../docs/ways-out.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(docs), "The agent tries these with `--network allow`:")
	_, table, _ = strings.Cut(table, "|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	found := ""
	for line := range strings.Lines(f.Agency("logs", "fenced").Stdout) {
		way, outcome, _ := strings.Cut(strings.TrimSpace(line), ": ")
		found += "| " + way + " | " + outcome + " | " + outcome + " |\n"
	}
	t.Logf("\n%s", found)
	if strings.TrimSpace(found) != strings.TrimSpace(table) {
		t.Errorf("docs/ways-out.md has\n%s", table)
	}
}

// runFenced runs the agent fenced, which tries to reach what is outside its sandbox, to its end.
func runFenced(t *testing.T, f *fixture.Fixture, sandbox map[string]any) {
	t.Helper()
	target := outside(t, f)
	_, port, err := net.SplitHostPort(target.TCP)
	if err != nil {
		t.Fatal(err)
	}
	aim, err := json.Marshal(target)
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("testdata/network-escape.sh")
	if err != nil {
		t.Fatal(err)
	}
	// The runner shell is sh, which cannot open connections.
	prompt := "export TARGET='" + string(aim) + "' PORT=" + port + "; exec bash <<'EOF'\n" + string(script) + "EOF\n"
	asked := map[string]any{
		"runner": map[string]any{"kind": "shell"}, "prompt": map[string]any{"text": prompt}, "headless": true, "name": "fenced",
		"network": "allow", "hosts": []string{"web.localhost:" + port, "*.here.localhost", "here.localhost"},
	}
	maps.Copy(asked, sandbox)
	spec, err := json.Marshal(asked)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(f.Root, "spec.json")
	if err := os.WriteFile(path, spec, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := f.Agency("run", "--spec", path); r.Exit != 0 {
		t.Fatal(r.Stderr)
	}
	if r := f.Agency("wait", "fenced", "--timeout", "120s"); r.Exit != 0 {
		t.Fatal(r.Stdout, r.Stderr, f.Agency("logs", "fenced", "--stderr").Stdout)
	}
}

// target is what an agent in a sandbox tries to reach outside.
type target struct {
	Dir                string
	Process            int
	TCP, UDP, Abstract string
}

// outside opens sockets outside every sandbox, until the end of the test.
func outside(t *testing.T, f *fixture.Fixture) target {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	name := "@" + filepath.Base(f.Root)
	abstract, err := net.Listen("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = abstract.Close() })
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = udp.Close() })
	go func() {
		for buf := make([]byte, 8); ; {
			n, from, err := udp.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = udp.WriteTo(buf[:n], from)
		}
	}()
	return target{Dir: "/nonexistent", Process: os.Getpid(), TCP: server.Listener.Addr().String(), UDP: udp.LocalAddr().String(), Abstract: name}
}

// An agent that is refused a host continues, and the user allows it the host meanwhile: for the
// attempt, or for all runs by the user's own configuration.
func TestSandboxAllowsLater(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bwrap"); err != nil {
		t.Skip("bubblewrap is not installed: make deps")
	}
	f := fixture.New(t, bin)
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	entries := []string{"a.localhost:" + port, "b.localhost:" + port}
	prompt := `exec bash <<'EOF'
for host in ` + strings.Join(entries, " ") + `; do
	until {
		exec 3<>/dev/tcp/127.0.0.1/${HTTP_PROXY##*:} && printf 'GET http://%s/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n' "$host" >&3 && grep -q '200 OK' <&3
	}; do sleep 0.05; done
done
EOF
`
	must := func(args ...string) string {
		t.Helper()
		r := f.Agency(args...)
		if r.Exit != 0 {
			t.Fatalf("agency %v: %s%s%s", args, r.Stdout, r.Stderr, f.Agency("explain", "later").Stdout)
		}
		return r.Stdout
	}
	until := func(want string) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !strings.Contains(must("show", "later"), want); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("show lacks %q:\n%s", want, must("show", "later"))
			}
		}
	}
	must("run", "--runner", "shell", "--name", "later", "--headless", "--sandbox", "process", "--network", "allow", "--prompt", prompt)
	until("agency answer later once|run|always --host " + entries[0])
	if out := must("answer", "later"); !strings.Contains(out, entries[0]+" was refused") {
		t.Errorf("agency answer shows %q", out)
	}
	must("answer", "later", "once", "--host", entries[0])
	until("--host " + entries[1])
	if config, _ := os.ReadFile(f.Config); strings.Contains(string(config), entries[0]) {
		t.Errorf("the configuration has what was allowed once:\n%s", config)
	}
	must("answer", "later", "always", "--host", entries[1])
	must("wait", "later", "--timeout", "60s")
	if config, _ := os.ReadFile(f.Config); !strings.Contains(string(config), `hosts = ["`+entries[1]+`"]`) {
		t.Errorf("the configuration is\n%s", config)
	}
}
