package supervisor_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"agency"
	"agency/internal/file"
	"agency/internal/supervisor"
)

// A repository that was moved keeps its runs, and git learns where their worktrees are.
func TestMovedRepository(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, gone := w.ended("first"), w.ended("gone")
	if err := os.RemoveAll(gone.Worktree); err != nil {
		t.Fatal(err)
	}
	repo := w.git.repos[w.root]
	delete(w.git.repos, w.root)
	repo.Root, repo.Toplevel = w.root+"-moved", w.root+"-moved"
	w.git.repos[repo.Root] = repo
	req := w.request("second")
	req.Spec.Repo = repo.Root
	second, err := w.createRun(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if second.Repo.Fingerprint != first.Repo.Fingerprint || second.Repo.Root != repo.Root {
		t.Errorf("got %+v, want the fingerprint of %+v", second.Repo, first.Repo)
	}
	if now := w.run(first.ID); now.Repo.Root != repo.Root {
		t.Errorf("the earlier run is in %s", now.Repo.Root)
	}
	if !slices.Equal(w.git.repaired, []string{first.Worktree}) {
		t.Errorf("repaired: got %q", w.git.repaired)
	}
}

// Looking at a repository in its new place is enough.
func TestLookAtAMovedRepository(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.ended("first")
	repo := w.git.repos[w.root]
	delete(w.git.repos, w.root)
	_, err := w.sup.ResumeRun(t.Context(), w.resumeRequest("first"))
	wantCode(t, err, agency.CodeInvalidState)
	if hint := agency.AsError(err).Hint; !strings.Contains(hint, "agency ls --repo") {
		t.Errorf("the hint is %q", hint)
	}
	repo.Root, repo.Toplevel = w.root+"-moved", w.root+"-moved"
	w.git.repos[repo.Root] = repo
	runs, err := w.sup.Query.RunsOf(t.Context(), repo.Root, agency.Filter{})
	if err != nil || len(runs) != 1 || !slices.Equal(w.git.repaired, []string{first.Worktree}) {
		t.Fatalf("got %v, %v and repaired %q", runs, err, w.git.repaired)
	}
	if _, err := w.sup.ResumeRun(t.Context(), w.resumeRequest("first")); err != nil {
		t.Error(err)
	}
}

// A repository under two names, by a mount or where case does not matter, is one.
func TestRepositoryUnderTwoNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.ended("first")
	mustWrite(t, filepath.Join(w.root, ".git", "HEAD"), "")
	other := w.git.repos[w.root]
	other.Root, other.Toplevel = w.root+"-mounted", w.root+"-mounted"
	w.git.repos[other.Root] = other
	req := w.request("second")
	req.Spec.Repo = other.Root
	second, err := w.createRun(t.Context(), req)
	if err != nil || second.Repo.Fingerprint != first.Repo.Fingerprint || len(w.git.repaired) != 0 {
		t.Errorf("got %+v, %v", second, err)
	}
}

// A copied repository has the id of the original, and gets its own.
func TestCopiedRepository(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.ended("first")
	copied := w.git.repos[w.root]
	copied.Root, copied.Toplevel = w.root+"-copy", w.root+"-copy"
	w.git.repos[copied.Root] = copied
	req := w.request("second")
	req.Spec.Repo = copied.Root
	second, err := w.createRun(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if second.Repo.Fingerprint == first.Repo.Fingerprint || second.Repo.Root != copied.Root {
		t.Errorf("got %+v", second.Repo)
	}
	if w.git.repos[copied.Root].Fingerprint != second.Repo.Fingerprint || w.git.repos[w.root].Fingerprint != first.Repo.Fingerprint {
		t.Errorf("ids: got %+v", w.git.repos)
	}
	if len(w.git.repaired) != 0 || w.run(first.ID).Repo.Root != w.root {
		t.Errorf("the original was taken for moved: %q", w.git.repaired)
	}
	for dir, name := range map[string]string{w.root: "first", copied.Root: "second"} {
		runs, err := w.sup.Query.RunsOf(t.Context(), dir, agency.Filter{})
		if err != nil || len(runs) != 1 || runs[0].Name != name {
			t.Errorf("runs of %s: got %v, %v", dir, runs, err)
		}
	}
}

// inputs makes a folder with files that a run may name as inputs, and others that it may not, and a
// folder beside it.
func inputs(t *testing.T) (base, external string) {
	t.Helper()
	base, external = t.TempDir(), t.TempDir()
	mustWrite(t, filepath.Join(base, "docs", "a file.md"), "hello")
	mustWrite(t, filepath.Join(base, "empty"), "")
	mustWrite(t, filepath.Join(external, "secret"), "s")
	for link, target := range map[string]string{
		"inner": "docs/a file.md", "out": filepath.Join(external, "secret"), "up": "../" + filepath.Base(external) + "/secret",
		"dir-out": external, "loop": "loop", "dangling": "nowhere",
	} {
		if err := os.Symlink(target, filepath.Join(base, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Mkfifo(filepath.Join(base, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	big := filepath.Join(base, "big")
	mustWrite(t, big, "")
	if err := os.Truncate(big, 256<<20+1); err != nil {
		t.Fatal(err)
	}
	return base, external
}

func TestFingerprint(t *testing.T) {
	t.Parallel()
	base, external := inputs(t)
	sum := sha256.Sum256([]byte("hello"))
	hello := hex.EncodeToString(sum[:])
	repo := agency.Repo{Root: base, Toplevel: base}
	for name, test := range map[string]struct {
		path string
		want string // the path in the record; empty for an error
		code agency.Code
	}{
		"file":             {"docs/a file.md", "docs/a file.md", ""},
		"absolute":         {filepath.Join(base, "docs/a file.md"), "docs/a file.md", ""},
		"link inside":      {"inner", "inner", ""},
		"parent":           {"../" + filepath.Base(external) + "/secret", "", agency.CodeInvalidPath},
		"absolute outside": {filepath.Join(external, "secret"), "", agency.CodeInvalidPath},
		"link out":         {"out", "", agency.CodeInvalidPath},
		"link up":          {"up", "", agency.CodeInvalidPath},
		"through a link":   {"dir-out/secret", "", agency.CodeInvalidPath},
		"loop":             {"loop", "", agency.CodeInvalidPath},
		"dangling":         {"dangling", "", agency.CodeInvalidPath},
		"missing":          {"nowhere", "", agency.CodeInvalidPath},
		"below a file":     {"empty/x", "", agency.CodeInvalidPath},
		"folder":           {"docs", "", agency.CodeInputNotFile},
		"itself":           {".", "", agency.CodeInputNotFile},
		"pipe":             {"pipe", "", agency.CodeInputNotFile},
		"too big":          {"big", "", agency.CodeInvalidPath},
		"NUL":              {"a\x00b", "", agency.CodeInvalidPath},
		"long":             {strings.Repeat("x", 5000), "", agency.CodeInvalidPath},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := supervisor.Fingerprint(repo, []agency.SpecInput{{Path: "empty"}, {Path: test.path}})
			if codeOf(err) != test.code {
				t.Fatalf("got %v, want %q", err, test.code)
			}
			if test.code != "" {
				return
			}
			if want := (agency.Input{Path: test.want, Size: 5, SHA256: hello}); len(got) != 2 || got[1] != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
	t.Run("bare", func(t *testing.T) {
		t.Parallel()
		_, err := supervisor.Fingerprint(agency.Repo{Root: base}, []agency.SpecInput{{Path: "empty"}})
		wantCode(t, err, agency.CodeInvalidPath)
		if got, err := supervisor.Fingerprint(agency.Repo{Root: base}, nil); err != nil || got == nil || len(got) != 0 {
			t.Errorf("got %#v, %v", got, err)
		}
	})
}

// A user whose working directory reaches a repository through a link names its files through the
// link.
func TestInputThroughALinkToTheRepository(t *testing.T) {
	t.Parallel()
	base, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	mustWrite(t, filepath.Join(base, "in.md"), "hello")
	if err := os.Symlink(base, link); err != nil {
		t.Fatal(err)
	}
	got, err := supervisor.Fingerprint(agency.Repo{Root: base, Toplevel: base}, []agency.SpecInput{{Path: filepath.Join(link, "in.md")}})
	if err != nil || len(got) != 1 || got[0].Path != "in.md" {
		t.Errorf("got %+v, %v", got, err)
	}
}

// meta.yaml consists of lines "key: value" whose values are JSON, whatever the prompt contains.
func FuzzMetaYAML(f *testing.F) {
	for _, prompt := range []string{
		"fix the login", "a: b\n---\n- c", "\"quoted\" 'and' \\", "# no comment", "tab\there", "\x1b[31mred", "é ü 🙂", "\xff\xfe", "a\u2028b\u2029c\u0085d",
		"null", strings.Repeat("界", 2000),
	} {
		f.Add(prompt, "sonnet")
	}
	f.Fuzz(func(t *testing.T, prompt, model string) {
		r := &agency.Run{ID: "r_1", Handle: "1122-x", Model: model, Attempt: agency.Attempt{CreatedAt: time.Unix(0, 0)}}
		data := string(supervisor.MetaYAML(r, []byte(prompt)))
		lines := strings.Split(strings.TrimSuffix(data, "\n"), "\n")
		if len(lines) != 7 || !utf8.ValidString(data) {
			t.Fatalf("got %q", data)
		}
		for _, line := range lines {
			_, value, ok := strings.Cut(line, ": ")
			var text *string
			if err := json.Unmarshal([]byte(value), &text); !ok || err != nil {
				t.Errorf("got %q: %v", line, err)
			}
			if text != nil && utf8.RuneCountInString(*text) > 1000 && strings.HasPrefix(line, "task_description") {
				t.Errorf("%d characters", utf8.RuneCountInString(*text))
			}
		}
	})
}

// YAML allows fewer unescaped characters than JSON.
func TestMetaYAMLIsPrintable(t *testing.T) {
	t.Parallel()
	for _, c := range string(supervisor.MetaYAML(&agency.Run{}, []byte("x\x7fy \u009b \ufffe \uffff"))) {
		if c != '\n' && unicode.IsControl(c) || c == 0xfffe || c == 0xffff {
			t.Errorf("YAML forbids %U", c)
		}
	}
}

// A git that was killed says nothing about the repository's configuration.
func TestProjectWhileGitIsKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.git.repos[w.root] = agency.Repo{Root: w.root, CommonDir: w.root} // bare
	w.git.fileErr = errors.New("signal: killed")
	if _, err := w.sup.Projects.Locate(t.Context(), w.root, ".", "HEAD"); err == nil || codeOf(err) == agency.CodeConfigInvalid {
		t.Errorf("got %v", err)
	}
	w.git.fileErr = file.ErrTooLarge
	_, err := w.sup.Projects.Locate(t.Context(), w.root, ".", "HEAD")
	wantCode(t, err, agency.CodeConfigInvalid)
}
