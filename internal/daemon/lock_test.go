package daemon_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"agency/internal/api"
	"agency/internal/config"
	"agency/internal/daemon"
	"agency/test/fixture"
)

// A reader of the lock learns which process holds a data root and what it is doing, without
// disturbing that process.
func TestLockHolder(t *testing.T) {
	home := shortHome(t)
	look := func(when, doing string, held bool) {
		t.Helper()
		want := api.Holder{Doing: doing, Locked: held}
		if doing != "" {
			want.PID = os.Getpid()
		}
		if got, err := daemon.LockHolder(home); err != nil || got != want {
			t.Errorf("%s: got %+v %v, want %+v", when, got, err, want)
		}
	}
	look("before", "", false)
	if _, err := os.Lstat(daemon.LockPath(home)); err == nil {
		t.Error("a look makes a lock")
	}
	cfg, ended := start(t, home)
	look("ready", "running", true)
	// A request in progress delays the stop.
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", cfg.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "POST /v1/run.list HTTP/1.1\r\nHost: agency\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "100") {
		t.Fatalf("%q %v", line, err)
	}
	if _, err := api.Call(t.Context(), client(t, cfg, version, nil), api.StopDaemon, api.Empty{}); err != nil {
		t.Fatal(err)
	}
	for c := client(t, cfg, version, nil); !errors.Is(err, api.ErrNoDaemon); {
		_, err = api.Call(t.Context(), c, api.DaemonStatus, api.Empty{})
	}
	look("draining", "stopping", true)
	if _, err := io.WriteString(conn, "{}"); err != nil {
		t.Fatal(err)
	}
	if err := ended.wait(t); err != nil {
		t.Fatal(err)
	}
	look("after", "stopping", false)
}

// A caller that gives up waiting for a daemon returns before the daemon is ready.
func TestSpawnGivenUp(t *testing.T) {
	home := shortHome(t)
	cfg, err := config.Load("", []string{"AGENCY_HOME=" + home, "HOME=" + home})
	if err != nil {
		t.Fatal(err)
	}
	fifo, slow := filepath.Join(home, "fifo"), filepath.Join(home, "slow")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := fixture.WriteProgram(slow, "#!/bin/sh\nread line <"+fifo+"\n"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- daemon.Spawn(ctx, cfg, slow, "", nil) }()
	begun, err := os.OpenFile(fifo, os.O_WRONLY, 0) // returns when the daemon reads
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	select {
	case err := <-ended:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("it waits on")
	}
	_ = begun.Close()
}
