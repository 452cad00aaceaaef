package git

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"agency"
)

// identity names the author and the committer of a commit that agency makes for a user.
type identity struct{ author, committer author }

// identity returns who makes commits in a repository, as git finds it in an environment: the names
// there override the configuration. When git knows no name, the error is E_GIT_FAILED, with the
// command that sets one.
func (g *Merges) identity(ctx context.Context, repo agency.Repo, env agency.Environ) (identity, error) {
	known := slices.DeleteFunc(env.Author(), func(variable string) bool { return strings.HasSuffix(variable, "=") })
	ask := func(which string) (author, error) {
		c := within(repo, "var", which)
		c.env = known
		out, err := g.do(ctx, c)
		if err != nil {
			return author{}, agency.Errorf(agency.CodeGitFailed, "git does not know who makes the commit: %s", words(err)).
				WithHint(`git config --global user.name "Your Name"; git config --global user.email you@example.com`)
		}
		return parseIdentity(strings.TrimSpace(out))
	}
	var by identity
	var unnamed error
	var beside sync.WaitGroup
	beside.Go(func() { by.author, unnamed = ask("GIT_AUTHOR_IDENT") })
	var err error
	by.committer, err = ask("GIT_COMMITTER_IDENT")
	beside.Wait()
	return by, cmp.Or(err, unnamed)
}

// landing makes the commits of a landing in a repository, through a view of it: nothing that an
// agent configured runs, and no hook.
type landing struct {
	git  *Merges
	repo agency.Repo
	site site
	by   identity // the author of new commits, and the committer of all
}

func (g *Merges) landing(ctx context.Context, repo agency.Repo, env agency.Environ) (*landing, error) {
	at, err := g.merging(ctx, repo)
	if err != nil {
		return nil, err
	}
	by, err := g.identity(ctx, repo, env)
	return &landing{git: g, repo: repo, site: at, by: by}, err
}

// MergeTree returns the tree of a merge of two commits. A conflict is E_MERGE_CONFLICT with its
// files in the detail "files".
func (g *Merges) MergeTree(ctx context.Context, repo agency.Repo, ours, theirs string) (string, error) {
	at, err := g.merging(ctx, repo)
	if err != nil {
		return "", err
	}
	return g.mergeTree(ctx, repo, at, ours, theirs)
}

func (l *landing) tree(ctx context.Context, commit string) (string, error) {
	return l.git.history.Tree(ctx, l.repo, commit)
}

// commit makes a commit. Without an author, the author is the user.
func (l *landing) commit(ctx context.Context, tree, message string, author *author, parents ...string) (string, error) {
	args := []string{"commit-tree", "--no-gpg-sign", "-F", "-"}
	for _, parent := range parents {
		args = append(args, "-p", parent)
	}
	made, by := l.by.committer, l.by.author
	if author != nil {
		by = *author
	}
	env := []string{
		"GIT_COMMITTER_NAME=" + made.name, "GIT_COMMITTER_EMAIL=" + made.email, "GIT_COMMITTER_DATE=" + made.date,
		"GIT_AUTHOR_NAME=" + by.name, "GIT_AUTHOR_EMAIL=" + by.email, "GIT_AUTHOR_DATE=" + by.date,
	}
	out, err := l.git.do(ctx, call{
		dir: l.repo.Root, site: l.site, env: env, input: message, args: append(args, tree),
		settings: []string{"core.fsync=all", "core.fsyncMethod=batch", "i18n.commitEncoding=UTF-8"},
	})
	return strings.TrimSpace(out), err
}

// author is who made a commit, and when, in git's format.
type author struct{ name, email, date string }

// parseIdentity reads "Name <address> seconds zone".
func parseIdentity(text string) (author, error) {
	name, rest, ok := strings.Cut(text, " <")
	email, date, found := strings.Cut(rest, "> ")
	if !ok || !found {
		return author{}, fmt.Errorf("read who makes commits: %.80q", text)
	}
	return author{name: name, email: email, date: "@" + date}, nil
}

// OnTop makes a commit with the tree of another one on top of a parent. Git finds in env who makes
// it; so it is for Squash, Join and Rebase.
func (g *Merges) OnTop(ctx context.Context, repo agency.Repo, env agency.Environ, parent, tree, message string) (string, error) {
	l, err := g.landing(ctx, repo, env)
	if err != nil {
		return "", err
	}
	return l.commit(ctx, tree, message, nil, parent)
}

// since returns the commit that stands for one side of a merge in which both sides have everything
// up to the commit base, although git does not know that: the target because the work was squashed,
// the source because base holds files that the source committed later. What both sides have by
// other merges still counts.
func (l *landing) since(ctx context.Context, side, base string) (string, error) {
	tree, err := l.tree(ctx, side)
	if err != nil {
		return "", err
	}
	return l.commit(ctx, tree, "one side", nil, base, side)
}

// Squash makes one commit on top of target with everything that source has since base. base need
// not be in the history of either; an empty base means where their histories meet. Squash calls
// message while it merges the files.
func (g *Merges) Squash(ctx context.Context, repo agency.Repo, env agency.Environ, target, source, base string, message func() (string, error)) (string, error) {
	return g.joined(ctx, repo, env, target, source, base, message, target)
}

// Join makes a merge commit of target and source, with the files that Squash makes.
func (g *Merges) Join(ctx context.Context, repo agency.Repo, env agency.Environ, target, source, base, message string) (string, error) {
	return g.joined(ctx, repo, env, target, source, base, func() (string, error) { return message, nil }, target, source)
}

func (g *Merges) joined(ctx context.Context, repo agency.Repo, env agency.Environ, target, source, base string, message func() (string, error), parents ...string) (string, error) {
	var text string
	var failed error
	var beside sync.WaitGroup
	beside.Go(func() { text, failed = message() })
	l, tree, err := g.joinedTree(ctx, repo, env, target, source, base)
	beside.Wait()
	if err := cmp.Or(err, failed); err != nil {
		return "", err
	}
	return l.commit(ctx, tree, text, nil, parents...)
}

// joinedTree merges the files of target with those that source has since base.
func (g *Merges) joinedTree(ctx context.Context, repo agency.Repo, env agency.Environ, target, source, base string) (*landing, string, error) {
	if base == "" { // then the merge needs no commit as its base
		at, err := g.merging(ctx, repo)
		if err != nil {
			return nil, "", err
		}
		var l *landing
		var failed error
		var beside sync.WaitGroup
		beside.Go(func() { l, failed = g.landing(ctx, repo, env) })
		tree, err := g.mergeTree(ctx, repo, at, target, source)
		beside.Wait()
		return l, tree, cmp.Or(failed, err)
	}
	l, err := g.landing(ctx, repo, env)
	if err != nil {
		return nil, "", err
	}
	ours, err := l.since(ctx, target, base)
	if err != nil {
		return nil, "", err
	}
	follows, err := g.history.Descends(ctx, repo, source, base)
	if err != nil {
		return nil, "", err
	}
	theirs := source
	if !follows {
		if theirs, err = l.since(ctx, source, base); err != nil {
			return nil, "", err
		}
	}
	tree, err := g.mergeTree(ctx, repo, l.site, ours, theirs)
	return l, tree, err
}

// Rebase makes each commit of source since base again on top of target, with its author, its date
// and the message that change returns; an empty base means where their histories meet. It drops
// commits whose content target already has, and returns their number. A merge commit is
// E_INVALID_STATE.
func (g *Merges) Rebase(ctx context.Context, repo agency.Repo, env agency.Environ, target, source, base string, change func(message string) string) (tip string, dropped int, err error) {
	l, err := g.landing(ctx, repo, env)
	if err != nil {
		return "", 0, err
	}
	span := target + ".." + source
	if base != "" {
		span = base + ".." + source
	}
	commits, err := g.history.commits(ctx, repo, span)
	if err != nil {
		return "", 0, err
	}
	slices.Reverse(commits)
	tip = target
	for i := range commits {
		c := &commits[i]
		if len(c.parents) != 1 {
			return "", 0, agency.Errorf(agency.CodeInvalidState, "%.12s does not have exactly one parent, so agency cannot rebase it: %s", c.id, printable(firstLine(c.message))).
				WithHint("land it with --method merge or --method squash")
		}
		if c.parents[0] == tip {
			tip = c.id // no commit has to be made again
			continue
		}
		was, err := l.tree(ctx, tip)
		if err != nil {
			return "", 0, err
		}
		ours, err := l.commit(ctx, was, "the target", nil, c.parents[0])
		if err != nil {
			return "", 0, err
		}
		tree, err := g.mergeTree(ctx, repo, l.site, ours, c.id)
		if err != nil {
			if conflict := agency.AsError(err); conflict.Code == agency.CodeMergeConflict {
				conflict.Message += fmt.Sprintf(", at the commit %.12s: %s", c.id, printable(firstLine(c.message)))
			}
			return "", 0, err
		}
		if tree == was {
			dropped++
			continue
		}
		if tip, err = l.commit(ctx, tree, change(c.message), &c.by, tip); err != nil {
			return "", 0, err
		}
	}
	return tip, dropped, nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
