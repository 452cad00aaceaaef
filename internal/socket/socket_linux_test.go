package socket_test

import (
	"os"
	"path/filepath"
	"testing"

	"agency"
	"agency/internal/socket"
	"agency/test/fixture"
)

// A client does not connect to another user who listens in place of the daemon.
func TestDialAnotherUsersSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(short(t), "shared", "a.sock")
	fixture.ListenAsStranger(t, path)
	if _, err := socket.Dial(t.Context(), path); !agency.IsCode(err, agency.CodePermissionDenied) {
		t.Errorf("got %v", err)
	}
}

// A folder of another user, and a link that another user made, prove nothing about their content.
func TestDialInAnotherUsersFolder(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can give files away")
	}
	dir := short(t)
	theirs, ours, link := filepath.Join(dir, "theirs"), filepath.Join(dir, "ours"), filepath.Join(dir, "link")
	listen(t, filepath.Join(theirs, "a.sock"))
	listen(t, filepath.Join(ours, "a.sock"))
	if err := os.Symlink(ours, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{theirs, link} {
		if err := os.Lchown(path, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		if _, err := socket.Dial(t.Context(), filepath.Join(path, "a.sock")); !agency.IsCode(err, agency.CodePermissionDenied) {
			t.Errorf("%s: got %v", path, err)
		}
	}
}
