package git_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agency"
	"agency/internal/git"
	"agency/test/fixture"
)

// hostile is a run's worktree whose agent can write everything but the user's own configuration.
type hostile struct {
	t      *testing.T
	g      *git.Git
	repo   agency.Repo
	path   string // of the worktree
	admin  string // git's folder for it
	evil   string // a command that writes the file ran and passes its input on
	ran    string
	base   string
	nested []string // repositories that a snapshot must name as not saved
}

func newHostile(t *testing.T) *hostile {
	t.Helper()
	g, repo := setup(t)
	repo, err := g.Record(t.Context(), repo)
	check(t, err)
	h := &hostile{t: t, g: g, repo: repo, path: filepath.Join(tempDir(t), "r1"), ran: filepath.Join(tempDir(t), "ran")}
	h.admin = filepath.Join(repo.CommonDir, "worktrees", "r1")
	h.base = sh(t, repo.Root, "rev-parse", "HEAD")
	check(t, g.AddWorktree(t.Context(), repo, h.path, "agency/r1", h.base, agency.OwnPrograms))
	program := filepath.Join(filepath.Dir(h.ran), "evil")
	check(t, fixture.WriteProgram(program, "#!/bin/sh\n: > '"+h.ran+"'\ncat\n"))
	h.evil = program
	write(t, h.in("a"), "the work\n")
	write(t, h.in("new"), "more work\n")
	return h
}

func (h *hostile) in(parts ...string) string {
	return filepath.Join(append([]string{h.path}, parts...)...)
}

// config names a program in the repository's own configuration.
func (h *hostile) config(keysAndValues ...string) {
	h.t.Helper()
	for i := 0; i < len(keysAndValues); i += 2 {
		sh(h.t, h.repo.CommonDir, "config", "--file", filepath.Join(h.repo.CommonDir, "config"), keysAndValues[i], keysAndValues[i+1])
	}
}

// filter adds a filter to the configuration that runs the program.
func (h *hostile) filter() string {
	return "[filter \"evil\"]\n\tclean = " + h.evil + "\n\tsmudge = " + h.evil + "\n[core]\n\tfsmonitor = " + h.evil + "\n"
}

// attributes assigns the filter, the diff driver and the merge driver to every file.
func (h *hostile) attributes() {
	write(h.t, h.in(".gitattributes"), "* filter=evil diff=evil merge=evil\n")
}

// fake makes a git directory of the agent's own, with the filter.
func (h *hostile) fake(dir string) {
	h.t.Helper()
	sh(h.t, h.path, "clone", "-q", "--bare", "--", h.repo.Root, dir)
	appendTo(h.t, filepath.Join(dir, "config"), strings.ReplaceAll(h.filter(), "[core]", "[core]\n\tbare = false"))
	h.attributes()
}

func (h *hostile) submodule(name string) string {
	h.t.Helper()
	dir := h.in(name)
	newRepo(h.t, dir)
	sh(h.t, h.path, "add", "--", name)
	write(h.t, filepath.Join(dir, ".gitattributes"), "* filter=evil\n")
	write(h.t, filepath.Join(dir, "a"), "changed")
	h.nested = append(h.nested, name)
	return dir
}

func appendTo(t *testing.T, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	check(t, err)
	_, err = f.WriteString(text)
	check(t, errors.Join(err, f.Close()))
}

// These attacks try to make the daemon's git run a program of the agent's: the daemon has none of
// the agent's limits.
var programAttacks = map[string]func(h *hostile){
	"the worktree's .git leads to another git directory": func(h *hostile) {
		h.fake(h.in(".x"))
		write(h.t, h.in(".git"), "gitdir: "+h.in(".x")+"\n")
	},
	"the worktree's .git is a link": func(h *hostile) {
		h.fake(h.in(".x"))
		check(h.t, os.Remove(h.in(".git")))
		check(h.t, os.Symlink(".x", h.in(".git")))
	},
	"the worktree's .git is gone, and a folder above is a repository": func(h *hostile) {
		h.fake(filepath.Join(filepath.Dir(h.path), ".git"))
		check(h.t, os.Remove(h.in(".git")))
	},
	"commondir leads elsewhere": func(h *hostile) {
		h.fake(h.in(".x"))
		write(h.t, filepath.Join(h.admin, "commondir"), h.in(".x")+"\n")
	},
	"a configuration beside the worktree's HEAD": func(h *hostile) {
		h.attributes()
		write(h.t, filepath.Join(h.admin, "config"), h.filter())
	},
	"a configuration of the worktree": func(h *hostile) {
		h.attributes()
		h.config("extensions.worktreeConfig", "true")
		write(h.t, filepath.Join(h.admin, "config.worktree"), h.filter())
	},
	"a filter that cleans": func(h *hostile) {
		h.attributes()
		h.config("filter.evil.clean", h.evil, "filter.evil.required", "true")
	},
	"a filter that is a process": func(h *hostile) { h.attributes(); h.config("filter.evil.process", h.evil) },
	"a filter for reading a file of a commit": func(h *hostile) {
		write(h.t, filepath.Join(h.repo.CommonDir, "info", "attributes"), "* filter=evil\n")
		h.config("filter.evil.smudge", h.evil)
	},
	"a filter in a file that is included": func(h *hostile) {
		h.attributes()
		write(h.t, h.in("included"), h.filter())
		h.config("include.path", h.in("included"))
	},
	"a filter in a file that is included in this repository": func(h *hostile) {
		h.attributes()
		write(h.t, h.in("included"), h.filter())
		h.config("includeIf.gitdir:"+h.repo.CommonDir+"/.path", h.in("included"))
	},
	"a file of attributes": func(h *hostile) {
		write(h.t, h.in("attributes"), "* filter=evil\n")
		h.config("core.attributesFile", h.in("attributes"), "filter.evil.clean", h.evil)
	},
	"a file system monitor":        func(h *hostile) { h.config("core.fsmonitor", h.evil) },
	"hooks in a folder of its own": func(h *hostile) { h.hooks(h.in("hooks")); h.config("core.hooksPath", h.in("hooks")) },
	"hooks in the repository":      func(h *hostile) { h.hooks(filepath.Join(h.repo.CommonDir, "hooks")) },
	"hooks in the configuration": func(h *hostile) {
		for _, event := range append([]string{"post-merge", "pre-auto-gc"}, git.CheckoutHooks...) {
			h.config("hook.x="+event+".event", event, "hook.x="+event+".command", h.evil)
		}
	},
	"a program for differences": func(h *hostile) { h.attributes(); h.config("diff.external", h.evil, "diff.evil.command", h.evil) },
	"a program that makes text": func(h *hostile) { h.attributes(); h.config("diff.evil.textconv", h.evil) },
	"a program that merges":     func(h *hostile) { h.attributes(); h.config("merge.evil.driver", h.evil, "merge.default", "evil") },
	"a program that signs":      func(h *hostile) { h.config("commit.gpgSign", "true", "gpg.program", h.evil, "user.signingKey", "x") },
	"pagers, editors and askers": func(h *hostile) {
		h.config("core.pager", h.evil, "pager.status", h.evil, "core.editor", h.evil, "core.askPass", h.evil, "credential.helper", h.evil)
	},
	"aliases of commands": func(h *hostile) {
		h.config("alias.status", "!"+h.evil, "alias.add", "!"+h.evil, "alias.update-index", "!"+h.evil)
	},
	"refs of alternates":                  func(h *hostile) { h.config("core.alternateRefsCommand", h.evil) },
	"a missing object of a partial clone": func(h *hostile) { h.promise("ssh://example.invalid/x"); h.config("core.sshCommand", h.evil) },
	"a missing object, by another way":    func(h *hostile) { h.promise("ext::" + h.evil); h.config("protocol.ext.allow", "always") },
	"a missing object, by a program on the other side": func(h *hostile) {
		h.promise(h.repo.Root)
		h.config("remote.evil.uploadpack", h.evil, "protocol.file.allow", "always")
	},
	"a submodule's configuration": func(h *hostile) {
		appendTo(h.t, filepath.Join(h.submodule("sub1"), ".git", "config"), h.filter())
	},
	"a submodule's .git leads elsewhere": func(h *hostile) {
		dir := h.submodule("sub1")
		h.fake(h.in(".x"))
		check(h.t, os.RemoveAll(filepath.Join(dir, ".git")))
		write(h.t, filepath.Join(dir, ".git"), "gitdir: ../.x\n")
	},
	"a submodule in a submodule": func(h *hostile) {
		dir := h.submodule("sub1")
		inner := filepath.Join(dir, "inner")
		newRepo(h.t, inner)
		sh(h.t, dir, "add", "inner")
		sh(h.t, dir, "commit", "-qm", "inner")
		appendTo(h.t, filepath.Join(inner, ".git", "config"), h.filter())
		write(h.t, filepath.Join(inner, ".gitattributes"), "* filter=evil\n")
	},
	"a repository that is not a submodule": func(h *hostile) {
		newRepo(h.t, h.in("loose"))
		appendTo(h.t, h.in("loose", ".git", "config"), h.filter())
		write(h.t, h.in("loose", ".gitattributes"), "* filter=evil\n")
		write(h.t, h.in("loose", "a"), "changed")
		h.nested = append(h.nested, "loose")
	},
	"a bare repository among the files": func(h *hostile) {
		h.fake(h.in("bare"))
		if _, err := h.g.Discover(h.t.Context(), h.in("bare")); !agency.IsCode(err, agency.CodeNotGitRepo) {
			h.t.Errorf("a bare repository among the files: %v", err)
		}
		if _, err := h.g.ResolveCommit(h.t.Context(), h.in("bare", "refs"), "HEAD"); !agency.IsCode(err, agency.CodeNotGitRepo) {
			h.t.Errorf("a bare repository among the files: %v", err)
		}
	},
	"the repository works on another folder": func(h *hostile) { h.config("core.worktree", filepath.Dir(h.evil)) },
}

func (h *hostile) hooks(dir string) {
	for _, name := range append([]string{"pre-commit", "post-commit", "update", "pre-auto-gc"}, git.CheckoutHooks...) {
		check(h.t, errors.Join(os.MkdirAll(dir, 0o755), fixture.WriteProgram(filepath.Join(dir, name), "#!/bin/sh\n: > '"+h.ran+"'\n")))
	}
}

// promise makes git believe that a remote has what is missing: the content of a file.
func (h *hostile) promise(url string) {
	blob := sh(h.t, h.path, "rev-parse", "HEAD:sub/b")
	h.config("core.repositoryFormatVersion", "1", "extensions.partialClone", "evil", "remote.evil.promisor", "true", "remote.evil.url", url)
	check(h.t, os.Remove(filepath.Join(h.repo.CommonDir, "objects", blob[:2], blob[2:])))
	check(h.t, os.Remove(h.in("sub", "b"))) // so that git looks for it
	write(h.t, h.in("sub", "c"), "two\n")
}

// Looking at a worktree, saving it and removing it run no program of the agent's choice, and save
// its work.
func TestHostilePrograms(t *testing.T) {
	t.Parallel()
	for name, attack := range programAttacks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHostile(t)
			attack(h)
			_ = os.Remove(h.ran) // the agent's own git ran it
			missing := strings.HasPrefix(name, "a missing object")
			ctx := t.Context()
			_, _ = h.g.ResolveCommit(ctx, h.path, "HEAD")
			_, _ = h.g.Discover(ctx, h.path)
			facts, err := h.g.Inspect(ctx, h.repo, h.path, h.base)
			if err != nil || !facts.Dirty {
				t.Errorf("inspect: %+v, %v", facts, err)
			}
			_, err1 := h.g.Diff(ctx, h.repo, h.path, "", agency.DiffPart{From: h.base, Limit: 1 << 20})
			_, err2 := h.g.DiffStat(ctx, h.repo, h.path, h.base, "")
			_, err3 := h.g.Ignored(ctx, h.repo, h.path, []string{"a"})
			_, _, err4 := h.g.File(ctx, h.repo, h.base, "a", 1<<10)
			result, err5 := h.g.Result(ctx, h.repo, h.path, "result")
			if err := errors.Join(err1, err2, err3, err4, err5); err != nil && !missing {
				t.Error(err)
			}
			if result != "" {
				_, _ = h.g.Merge(ctx, h.repo, []string{result, h.ours()}, "merge")
			}
			saved, err := h.g.Snapshot(ctx, h.repo, h.path, h.base, "refs/agency/snapshots/r1/1", "work")
			check(t, err)
			if got := slices.Sorted(slices.Values(saved.Nested)); !slices.Equal(got, h.nested) {
				t.Errorf("the snapshot names %q as not saved, want %q", got, h.nested)
			}
			check(t, h.g.RemoveWorktree(ctx, h.repo, h.path))
			check(t, h.g.DeleteBranch(ctx, h.repo, "agency/r1"))
			if _, err := os.Lstat(h.ran); err == nil {
				t.Error("a program of the agent's choice ran")
			}
			check(t, os.WriteFile(filepath.Join(h.repo.CommonDir, "config"), nil, 0o644)) // so that the test can read it
			for file, want := range map[string]string{"a": "the work", "new": "more work"} {
				if got := sh(t, h.repo.CommonDir, "cat-file", "blob", saved.Ref+":"+file); got != want {
					t.Errorf("%s is saved as %q", file, got)
				}
			}
		})
	}
}

// ours makes a commit that contradicts the agent's.
func (h *hostile) ours() string {
	dir := tempDir(h.t)
	sh(h.t, dir, "init", "-q")
	write(h.t, filepath.Join(dir, "a"), "ours\n")
	sh(h.t, dir, "fetch", "-q", h.repo.Root, "main")
	sh(h.t, dir, "reset", "-q", "--soft", "FETCH_HEAD")
	sh(h.t, dir, "add", "a")
	sh(h.t, dir, "-c", "core.hooksPath=/dev/null", "commit", "-qm", "ours")
	commit := sh(h.t, dir, "rev-parse", "HEAD")
	_, _ = try(h.repo.Root, "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "core.worktree=", "fetch", "-q", dir, "HEAD:refs/ours")
	_ = os.Remove(h.ran)
	return commit
}
