package daemon_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agency"
	"agency/internal/api"
)

// folder makes a folder with exactly this mode.
func folder(t *testing.T, path string, mode fs.FileMode) string {
	t.Helper()
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func modeOf(t *testing.T, path string) fs.FileMode {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Mode() &^ fs.ModeDir
}

// A folder that the user chose for the socket is used or refused, and never changed.
func TestSocketFolder(t *testing.T) {
	for mode, fine := range map[fs.FileMode]bool{
		0o700: true, 0o755: true, 0o711: true, 0o775: false, 0o777: false, 0o777 | fs.ModeSticky: false,
	} {
		t.Run(mode.String(), func(t *testing.T) {
			home := shortHome(t)
			dir := folder(t, filepath.Join(home, "shared"), mode)
			cfg, ended := start(t, filepath.Join(home, "data"), "AGENCY_SOCKET="+filepath.Join(dir, "a.sock"))
			if got := modeOf(t, dir); got != mode {
				t.Errorf("the folder has the mode %s now", got)
			}
			if !fine {
				if err := ended.wait(t); !agency.IsCode(err, agency.CodeSocketPathInvalid) || !strings.Contains(err.Error(), dir) {
					t.Errorf("got %v", err)
				}
				return
			}
			if _, err := api.Call(t.Context(), client(t, cfg, version, nil), api.DaemonStatus, api.Empty{}); err != nil {
				t.Error(err)
			}
			if got := modeOf(t, cfg.Socket).Perm(); got != 0o600 {
				t.Errorf("the socket has the mode %s", got)
			}
		})
	}
}

// The data root is agency's own and made private; one that other users can write is refused.
func TestHomeFolder(t *testing.T) {
	open := folder(t, filepath.Join(shortHome(t), "open"), 0o755)
	start(t, open)
	if got := modeOf(t, open); got != 0o700 {
		t.Errorf("the data root has the mode %s", got)
	}
	shared := folder(t, filepath.Join(shortHome(t), "shared"), 0o777|fs.ModeSticky)
	_, ended := start(t, shared)
	if err := ended.wait(t); !agency.IsCode(err, agency.CodePermissionDenied) || !strings.Contains(err.Error(), shared) {
		t.Errorf("got %v", err)
	}
	if got := modeOf(t, shared); got != 0o777|fs.ModeSticky {
		t.Errorf("the shared folder has the mode %s now", got)
	}
}

// A deleted socket is made again, with its folder.
func TestSocketFolderGone(t *testing.T) {
	home := shortHome(t)
	dir := filepath.Join(home, "sockets")
	cfg, _ := start(t, filepath.Join(home, "data"), "AGENCY_SOCKET="+filepath.Join(dir, "a.sock"))
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	c := client(t, cfg, version, nil)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		_, err := api.Call(t.Context(), c, api.DaemonStatus, api.Empty{})
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	if got := modeOf(t, dir); got != 0o700 {
		t.Errorf("the folder has the mode %s", got)
	}
}
