package file_test

import (
	"os"
	"path/filepath"
	"testing"

	"agency/internal/file"
	"agency/test/fixture"
)

func TestFindProgram(t *testing.T) {
	empty, first, second := t.TempDir(), t.TempDir(), t.TempDir()
	t.Chdir(first)
	write := func(dir, text string) {
		if err := fixture.WriteProgram(filepath.Join(dir, "agent"), text); err != nil {
			t.Fatal(err)
		}
	}
	write(first, "#!/bin/sh\n")
	write(second, "#!/bin/sh\n")
	if err := os.Mkdir(filepath.Join(empty, "agent"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(empty, "plain"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		first + ":" + second:           filepath.Join(first, "agent"),
		empty + "::/nowhere:" + second: filepath.Join(second, "agent"),
		".::" + filepath.Base(first):   "",
		"":                             "",
	} {
		if got, found := file.FindProgram(path, "agent"); got != want || found != (want != "") {
			t.Errorf("in %q: %q, %v, want %q", path, got, found, want)
		}
	}
	if got, found := file.FindProgram(empty, "plain"); found {
		t.Errorf("got %q, which is no program", got)
	}
}
