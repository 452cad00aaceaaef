package script_test

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"agency/test/fixture"
)

// Another user listens on the socket that AGENCY_SOCKET names: no command sends a byte to that
// user, and none starts a program from an answer.
func TestSocketOfAnotherUser(t *testing.T) {
	t.Parallel()
	f := fixture.New(t, bin)
	path := filepath.Join(f.Root, "shared", "agency.sock")
	heard := hear(fixture.ListenAsStranger(t, path))
	f.Env = append(f.Env, "AGENCY_SOCKET="+path, "ANTHROPIC_API_KEY=secret")
	for _, command := range []string{"ls", "attach x", "run --prompt x", "daemon status", "daemon stop"} {
		r := f.Agency(strings.Fields(command)...)
		if r.Exit == 0 || !strings.Contains(r.Stderr, "another user") {
			t.Errorf("agency %s: status %d, %q", command, r.Exit, r.Stderr)
		}
	}
	if words := heard(); words != "" {
		t.Errorf("the other user heard %.300q", words)
	}
}

// The short path of a socket is in a folder of /tmp that another user may have made first.
func TestShortSocketFolderOfAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can give files away")
	}
	f := fixture.New(t, bin)
	victim := filepath.Join(f.Root, "victim")
	if err := os.Mkdir(victim, 0o755); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(f.Root, "short")
	if err := os.Symlink(victim, link); err != nil {
		t.Fatal(err)
	}
	if err := os.Lchown(link, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	f.Env = append(f.Env, "AGENCY_SOCKET="+filepath.Join(link, "a.sock"))
	if r := f.Agency("ls"); r.Exit == 0 || !strings.Contains(r.Stderr, "another user") {
		t.Errorf("status %d, %q", r.Exit, r.Stderr)
	}
	if info, err := os.Stat(victim); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("the folder behind the link was changed: %v, %v", info.Mode(), err)
	}
}

// hear accepts every connection of a listener. It returns a function that returns
// everything received so far.
func hear(l net.Listener) func() string {
	var mu sync.Mutex
	var words strings.Builder
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
			data, _ := io.ReadAll(io.LimitReader(conn, 1<<20))
			mu.Lock()
			words.Write(data)
			mu.Unlock()
			_ = conn.Close()
		}
	}()
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		return words.String()
	}
}
