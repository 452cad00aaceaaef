package tmux_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"agency"
	"agency/internal/tmux"
	"agency/test/fixture"
)

func TestParseVersion(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		out, version string
		recent       bool
	}{
		{"tmux 3.3a\n", "3.3a", true},
		{"tmux 3.2\n", "3.2", true},
		{"tmux 3.2-rc3\n", "3.2-rc3", true},
		{"tmux 3.10\n", "3.10", true},
		{"tmux next-3.5\n", "next-3.5", true},
		{"tmux openbsd-7.5\n", "openbsd-7.5", true},
		{"tmux openbsd-6.1\n", "openbsd-6.1", true},
		{"tmux master\n", "master", true},
		{"tmux 4.0\n", "4.0", true},
		{"tmux 3.1c\n", "3.1c", false},
		{"tmux 2.9\n", "2.9", false},
	} {
		version, recent, err := tmux.ParseVersion(tt.out)
		if err != nil || version != tt.version || recent != tt.recent {
			t.Errorf("%q: %q, %v, %v", tt.out, version, recent, err)
		}
	}
	for _, bad := range []string{"", "tmux", "tmux x", "screen 4.9", "tmux 3", "tmux 3.3a extra", "tmux 99999999999999999999.1"} {
		if version, _, err := tmux.ParseVersion(bad); err == nil {
			t.Errorf("%q is read as %q", bad, version)
		}
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	bin := t.TempDir()
	program := func(name, script string) {
		if err := fixture.WriteProgram(filepath.Join(bin, name), "#!/bin/sh\n"+script+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	m := tmux.New("", 10*time.Second)
	m.Env = []string{"PATH=.:relative:" + bin}

	expect := func(message, hint string) {
		t.Helper()
		_, err := m.Version(ctx)
		e := agency.AsError(err)
		if err == nil || e.Code != agency.CodeTmuxNotFound || !strings.Contains(e.Message, message) || !strings.Contains(e.Hint, hint) {
			t.Errorf("error = %#v, want %q with the hint %q", e, message, hint)
		}
	}
	expect("not installed", "with your package manager")
	program("brew", "")
	expect("not installed", "brew install tmux")
	program("dnf", "")
	expect("not installed", "sudo dnf install tmux")
	program("tmux", "echo tmux 3.1c")
	program("apt-get", "")
	expect("tmux 3.1c is too old: agency needs 3.2 or newer", "sudo apt-get install tmux")
	program("tmux", "echo tmux 3.2")
	if got, err := m.Version(ctx); err != nil || got != "3.2" {
		t.Errorf("Version = %q, %v", got, err)
	}

	s := newServer(t, "")
	if got, err := s.Version(ctx); err != nil || got == "" {
		t.Errorf("the real tmux: Version = %q, %v", got, err)
	}
}

func FuzzParseVersion(f *testing.F) {
	for _, seed := range []string{"tmux 3.3a\n", "tmux next-3.5", "tmux openbsd-7.5", "tmux \x1b[31m"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, out string) {
		version, _, err := tmux.ParseVersion(out)
		if err == nil && !strings.Contains(out, "tmux "+version) {
			t.Errorf("%q is read as %q", out, version)
		}
		if err != nil && strings.ContainsFunc(err.Error(), unicode.IsControl) {
			t.Errorf("control characters in the error %q", err)
		}
	})
}

func FuzzParseList(f *testing.F) {
	for _, seed := range []string{"0 agency_r_1\n2 mine\n", "", "x y\n", "1\n", "-1 x", "0 with space\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, out string) {
		names, clients, err := tmux.ParseList(out)
		if err != nil {
			return
		}
		if lines := strings.Count(strings.TrimSuffix(out, "\n")+"\n", "\n"); out != "" && len(names) != lines {
			t.Errorf("%q: %d sessions in %d lines", out, len(names), lines)
		}
		for i := range names {
			if names[i] == "" || clients[i] < 0 {
				t.Errorf("%q: session %q with %d clients", out, names[i], clients[i])
			}
		}
	})
}

func FuzzReadable(f *testing.F) {
	f.Add("duplicate session: x\n")
	f.Add("\x1b]0;title\a\xff")
	f.Fuzz(func(t *testing.T, s string) {
		got := tmux.Readable(s)
		if len([]rune(got)) > 301 || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("Readable(%q) = %q", s, got)
		}
	})
}
