package runner_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agency/internal/protocol"
	"agency/internal/runner"
)

// A file that a program appends to is archived and freed, and a reader follows: each line is there once.
func TestArchiveWhileWritten(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out, err := os.OpenFile(filepath.Join(dir, protocol.WireFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	const lines = 100_000
	wrote := make(chan error, 1)
	go func() {
		var err error
		for i := 0; i < lines && err == nil; i++ {
			_, err = fmt.Fprintf(out, "line %d\n", i)
		}
		wrote <- errors.Join(err, out.Close())
	}()
	in, err := runner.OpenLog(dir, "wire", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	var got bytes.Buffer
	for over := false; !over; {
		select {
		case err := <-wrote:
			if over = true; err != nil {
				t.Fatal(err)
			}
		default:
		}
		info, err := os.Stat(out.Name())
		if err == nil {
			err = errors.Join(runner.Archive(dir, protocol.WireFile, info.Size(), 0), runner.Free(dir, protocol.WireFile, info.Size()))
		}
		if err == nil {
			_, err = io.CopyN(&got, in, 100_000) // it lags behind
		}
		if err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	}
	if _, err := got.ReadFrom(in); err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	for i := range lines {
		fmt.Fprintf(&want, "line %d\n", i)
	}
	if !bytes.Equal(got.Bytes(), want.Bytes()) || in.Offset() != int64(want.Len()) {
		t.Errorf("read %d bytes up to %d, want %d", got.Len(), in.Offset(), want.Len())
	}
}

// An archive that reaches its limit loses its oldest part, and a reader is told how much.
func TestArchiveLimit(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, protocol.WireFile)
	random := make([]byte, 10_000)
	rng := rand.NewChaCha8([32]byte{})
	for i := int64(1); i <= 5; i++ {
		_, _ = rng.Read(random)
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = f.Write(random)
		}
		if err := errors.Join(err, f.Close(), runner.Archive(dir, protocol.WireFile, 10_000*i, 25_000), runner.Free(dir, protocol.WireFile, 10_000*i)); err != nil {
			t.Fatal(err)
		}
	}
	w, err := runner.OpenLog(dir, "wire", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close() }()
	data, err := io.ReadAll(w)
	if err != nil || !strings.HasPrefix(string(data), "[agency: the first 30000 bytes of this log were dropped]\n") || !bytes.HasSuffix(data, random) {
		t.Errorf("read %d bytes, %.60q, %v", len(data), data, err)
	}
	if err := w.GoTo(40_000); err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(w); err != nil || !bytes.Equal(data, random) {
		t.Errorf("read %d bytes from 40000, %v", len(data), err)
	}
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil || stat.Size != 50_000 || stat.Blocks*512 >= 10_000 {
		t.Errorf("%+v, %v", stat, err)
	}
}

// Two files go into the archive at the same time, and each is there as it was.
func TestArchiveTwoAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	streams := map[string]string{"wire": protocol.WireFile, "stderr": "logs/runner.stderr.log"}
	content := map[string][]byte{}
	var all sync.WaitGroup
	for stream, name := range streams {
		content[stream] = bytes.Repeat([]byte(stream+" says this\n"), 1<<20)
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, content[stream], 0o600)); err != nil {
			t.Fatal(err)
		}
		size := int64(len(content[stream]))
		all.Go(func() {
			if err := errors.Join(runner.Archive(dir, name, size, 0), runner.Free(dir, name, size)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	all.Wait()
	for stream, want := range content {
		in, err := runner.OpenLog(dir, stream, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(in); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes of %d, %v", stream, len(got), len(want), err)
		}
		_ = in.Close()
	}
}

// A log that is made again from a checkpoint has the bytes before it, or says how many it has lost.
func TestResumeLog(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		before string
		end    int64
		want   string
	}{
		{"abcdef", 0, "new"},
		{"abcdef", 4, "abcdnew"},
		{"abcdef", 6, "abcdefnew"},
		{"abcdef", 9, "abcdefnew"},
		{"[agency: the first 10 bytes of this log were dropped]\nabc", 12, "[agency: the first 10 bytes of this log were dropped]\nabnew"},
		{"[agency: the first 10 bytes of this log were dropped]\nabc", 7, "[agency: the first 7 bytes of this log were dropped]\nnew"},
	} {
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, []byte(c.before), 0o600); err != nil {
			t.Fatal(err)
		}
		write, err := runner.ResumeLog(path, 0, c.end)
		if err != nil {
			t.Fatal(err)
		}
		write([]byte("new"))
		if got, err := os.ReadFile(path); err != nil || string(got) != c.want {
			t.Errorf("%q up to %d: got %q, want %q, %v", c.before, c.end, got, c.want, err)
		}
	}
}
