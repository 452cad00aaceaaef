package git

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"agency"
)

// commit is one commit of a history.
type commit struct {
	id      string
	parents []string
	author  string
	by      author
	at      time.Time // when it was written
	message string    // in UTF-8
}

// commits lists the commits of a range, children before parents.
func (g *History) commits(ctx context.Context, repo agency.Repo, span string) ([]commit, error) {
	const format = "%H%x00%P%x00%an%x00%ae%x00%ad%x00%at%x00%B%x00"
	out, err := g.run(ctx, repo, "log", "-z", "--topo-order", "--no-show-signature", "--no-mailmap", "--encoding=UTF-8", "--date=raw", "--format=tformat:"+format, "--end-of-options", span, "--")
	if err != nil {
		return nil, fmt.Errorf("list the commits of %s: %w", span, err)
	}
	fields := strings.Split(out, "\x00")
	list := []commit{}
	const each = 8 // with the empty one that -z adds
	for i := 0; i+each-1 < len(fields); i += each {
		seconds, err := strconv.ParseInt(fields[i+5], 10, 64)
		if err != nil || !sha().MatchString(fields[i]) {
			return nil, fmt.Errorf("list the commits of %s: read %.80q", span, strings.Join(fields[i:i+each], " "))
		}
		list = append(list, commit{
			id: fields[i], parents: strings.Fields(fields[i+1]), author: fields[i+2],
			by: author{fields[i+2], fields[i+3], "@" + fields[i+4]}, at: time.Unix(seconds, 0).UTC(), message: fields[i+6],
		})
	}
	return list, nil
}

// Messages returns the messages of the commits of to that from does not have, the oldest first.
func (g *History) Messages(ctx context.Context, repo agency.Repo, from, to string) ([]string, error) {
	list, err := g.commits(ctx, repo, from+".."+to)
	if err != nil {
		return nil, err
	}
	messages := make([]string, 0, len(list))
	for _, c := range slices.Backward(list) {
		messages = append(messages, c.message)
	}
	return messages, nil
}

// Commits lists the commits of to that from does not have, the newest first.
func (g *History) Commits(ctx context.Context, repo agency.Repo, from, to string) ([]agency.Commit, error) {
	list, err := g.commits(ctx, repo, from+".."+to)
	if err != nil {
		return nil, err
	}
	commits := make([]agency.Commit, 0, len(list))
	for i := range list {
		subject, _, _ := strings.Cut(list[i].message, "\n")
		commits = append(commits, agency.Commit{ID: list[i].id, Author: printable(list[i].author), At: list[i].at, Subject: printable(subject)})
	}
	return commits, nil
}

// Descends reports whether commit is from, or a descendant of it.
func (g *History) Descends(ctx context.Context, repo agency.Repo, commit, from string) (bool, error) {
	_, err := g.run(ctx, repo, "merge-base", "--is-ancestor", from, commit)
	if exited(err, 1) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("compare %.12s and %.12s: %w", commit, from, err)
	}
	return true, nil
}

// Bases returns the best common ancestors of two commits: none, one, or several after criss-cross
// merges.
func (g *History) Bases(ctx context.Context, repo agency.Repo, a, b string) ([]string, error) {
	out, err := g.run(ctx, repo, "merge-base", "--all", a, b)
	if exited(err, 1) {
		return nil, nil
	}
	return strings.Fields(out), err
}

// ForkPoint returns the newest commit that two commits have in common. Without one the error is
// E_INVALID_STATE.
func (g *History) ForkPoint(ctx context.Context, repo agency.Repo, one, other string) (string, error) {
	out, err := g.run(ctx, repo, "merge-base", one, other)
	switch {
	case exited(err, 1):
		return "", agency.Errorf(agency.CodeInvalidState, "%.12s and %.12s have no commit in common", one, other)
	case err != nil:
		return "", fmt.Errorf("compare %.12s and %.12s: %w", one, other, err)
	}
	return strings.TrimSpace(out), nil
}

// Covered returns the newest commits of the history of source that one of the others has too,
// without those that target has. Others that do not exist have nothing.
func (g *History) Covered(ctx context.Context, repo agency.Repo, target, source string, others []string) ([]string, error) {
	list := func(less ...string) ([]string, error) {
		args := append([]string{"rev-list", "--topo-order", "--parents", "--ignore-missing", "--end-of-options", source, "^" + target}, less...)
		out, err := g.run(ctx, repo, append(args, "--")...)
		return strings.Split(strings.TrimSpace(out), "\n"), err
	}
	own, err := list()
	if err != nil || own[0] == "" {
		return nil, err
	}
	without := make([]string, 0, len(others))
	for _, other := range others {
		without = append(without, "^"+other)
	}
	left, err := list(without...)
	if err != nil || len(left) == len(own) && left[0] != "" {
		return nil, err
	}
	rest, has := map[string]bool{}, map[string]bool{}
	for _, line := range left {
		commit, _, _ := strings.Cut(line, " ")
		rest[commit] = true
	}
	newest := []string{}
	for _, line := range own { // children before parents
		commits := strings.Fields(line)
		if rest[commits[0]] {
			continue
		}
		if !has[commits[0]] {
			newest = append(newest, commits[0])
		}
		for _, parent := range commits[1:] {
			has[parent] = true
		}
	}
	return newest, nil
}

// Missing returns those of some commits that target does not have in its history.
func (g *History) Missing(ctx context.Context, repo agency.Repo, target string, commits []string) ([]string, error) {
	args := append([]string{"rev-list", "--ignore-missing", "--end-of-options", "^" + target}, commits...)
	out, err := g.run(ctx, repo, append(args, "--")...)
	if err != nil {
		return nil, err
	}
	has := map[string]bool{}
	for commit := range strings.FieldsSeq(out) {
		has[commit] = true
	}
	return slices.DeleteFunc(slices.Clone(commits), func(commit string) bool { return !has[commit] }), nil
}

// Unmatched returns those commits of source, without the histories of others, whose change no
// commit of candidate makes. It compares patch ids, which cover the changed lines and those around
// them.
func (g *History) Unmatched(ctx context.Context, repo agency.Repo, candidate, source string, others ...string) ([]string, error) {
	args := []string{"rev-list", "--cherry-mark", "--right-only", "--end-of-options", candidate + "..." + source}
	for _, other := range others {
		args = append(args, "^"+other)
	}
	out, err := g.run(ctx, repo, append(args, "--")...)
	if err != nil {
		return nil, fmt.Errorf("compare the changes of %.12s and %.12s: %w", candidate, source, err)
	}
	unmatched := []string{}
	for mark := range strings.FieldsSeq(out) {
		if commit, ok := strings.CutPrefix(mark, "+"); ok {
			unmatched = append(unmatched, commit)
		}
	}
	return unmatched, nil
}

// Tree returns the tree of a commit.
func (g *History) Tree(ctx context.Context, repo agency.Repo, commit string) (string, error) {
	out, err := g.run(ctx, repo, "rev-parse", "--verify", "--end-of-options", commit+"^{tree}")
	if err != nil {
		return "", fmt.Errorf("find the tree of %.12s: %w", commit, err)
	}
	return strings.TrimSpace(out), nil
}

// allSubmodules makes git show each submodule whose commit differs. Without it, git leaves out those
// that .gitmodules or the configuration ignores, and an agent can write both.
const allSubmodules = "--ignore-submodules=none"

// Changes lists the files in which two commits differ.
func (g *History) Changes(ctx context.Context, repo agency.Repo, from, to string) ([]agency.FileChange, error) {
	out, err := g.run(ctx, repo, changesArgs(from, to)...)
	if err != nil {
		return nil, fmt.Errorf("compare %.12s with %.12s: %w", from, to, err)
	}
	return parseChanges(out), nil
}

func changesArgs(from, to string) []string {
	return []string{"diff-tree", "-r", "-z", "--no-renames", "--name-status", allSubmodules, "--end-of-options", from, to, "--"}
}

func parseChanges(out string) []agency.FileChange {
	changes := []agency.FileChange{}
	fields := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		changes = append(changes, agency.FileChange{Status: fields[i], Path: fields[i+1]})
	}
	return changes
}

// Changed lists the files in which two commits or trees differ, with the content of each on both
// sides. A renamed file counts as one that was removed and one that was added.
func (g *History) Changed(ctx context.Context, repo agency.Repo, from, to string) ([]agency.ChangedFile, error) {
	out, err := g.run(ctx, repo, "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", allSubmodules, "--end-of-options", from, to, "--")
	if err != nil {
		return nil, err
	}
	files := []agency.ChangedFile{}
	fields := strings.Split(strings.TrimSuffix(out, "\x00"), "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		// :MODE MODE OBJECT OBJECT STATUS
		facts := strings.Fields(strings.TrimPrefix(fields[i], ":"))
		if len(facts) != 5 {
			return nil, fmt.Errorf("read the differences of %.12s and %.12s: %.80q", from, to, fields[i])
		}
		f := agency.ChangedFile{Path: fields[i+1], Status: facts[4]}
		if facts[0] != "000000" {
			f.From = facts[0] + " " + facts[2]
		}
		if facts[1] != "000000" {
			f.To = facts[1] + " " + facts[3]
		}
		files = append(files, f)
	}
	return files, nil
}

// Touched returns the files that differ between two commits and match one of the patterns. These
// are git's globs, in which ** is any number of folders, and case does not matter.
func (g *History) Touched(ctx context.Context, repo agency.Repo, from, to string, patterns []string) ([]string, error) {
	args := []string{"diff-tree", "-r", "-z", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv", allSubmodules, "--end-of-options", from, to, "--"}
	for _, pattern := range patterns {
		args = append(args, ":(top,glob,icase)"+pattern)
	}
	if len(patterns) == 0 {
		return nil, nil
	}
	out, err := g.run(ctx, repo, args...)
	if err != nil || out == "" {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(out, "\x00"), "\x00"), nil
}
