package daemon_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"agency"
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

// A command that makes another database does not replace the one of a daemon that began meanwhile,
// because the file of the command's lock was deleted.
func TestLockLostWhileTheDatabaseIsReplaced(t *testing.T) {
	home := shortHome(t)
	begun := false
	cfg, ended := start(t, home)
	stop := func() {
		t.Helper()
		if _, err := api.Call(t.Context(), client(t, cfg, version, nil), api.StopDaemon, api.Empty{}); err != nil {
			t.Fatal(err)
		}
		if err := ended.wait(t); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	begin := sync.OnceFunc(func() {
		if err := os.Remove(daemon.LockPath(home)); err != nil {
			t.Error(err)
		}
		cfg, ended = start(t, home)
		begun = true
	})
	writeRun(t, home)
	path := filepath.Join(home, "agency.db")
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = daemon.RebuildDatabase(t.Context(), home, func() time.Time {
		begin()
		return time.Now()
	})
	if !agency.IsCode(err, agency.CodeInvalidState) || !strings.Contains(err.Error(), "nothing was replaced") {
		t.Errorf("the database of a daemon was replaced: %v", err)
	}
	if after, err := os.Stat(path); err != nil || !os.SameFile(before, after) {
		t.Errorf("another file: %v", err)
	}
	if !begun {
		t.Error("no daemon began meanwhile")
	}
	stop()
}

// writeRun makes the folder of a run that a database does not have.
func writeRun(t *testing.T, home string) {
	t.Helper()
	r := agency.Run{ID: agency.NewRunID(time.Now(), [10]byte{1}), Handle: "1125-one-0001", Repo: agency.Repo{Root: home, Fingerprint: "one"}}
	r.Attempt = agency.Attempt{Number: 1, State: agency.Completed}
	data, err := json.Marshal(&r)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(home, "runs", string(r.ID), "meta.json")
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, data, 0o600)); err != nil {
		t.Fatal(err)
	}
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
	case <-time.After(time.Minute):
		t.Error("it waits on")
	}
	_ = begun.Close()
}
