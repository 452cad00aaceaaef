package git

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"agency"
	"agency/internal/plain"
)

// Diff compares the commit, or the tree, of a part with the commit to or, when to is empty, with
// everything in the worktree that is not ignored, untracked files included. Changes that are too many
// or too large are left out before they are read, and named. The worktree, its index and the repository
// are not changed, and no program runs except filters of the user and of the recorded configuration. The
// patch ends after so many bytes as the part says. E_INVALID_PATH: the file of the part did not
// change.
func (g *Trees) Diff(ctx context.Context, repo agency.Repo, worktree, to string, part agency.DiffPart) (agency.Diff, error) {
	diff, err := g.diff(ctx, repo, worktree, to, part)
	if err != nil {
		return agency.Diff{}, fmt.Errorf("compare %s with %.12s: %w", worktree, part.From, err)
	}
	return diff, nil
}

func (g *Trees) diff(ctx context.Context, repo agency.Repo, worktree, to string, part agency.DiffPart) (d agency.Diff, err error) {
	l := look{git: g.program, repo: repo, last: to, tree: to, borrowed: part.Objects}
	d.From, d.LeftOut.Named, d.List = part.From, []agency.LeftFile{}, []agency.FileDiff{}
	if to == "" {
		if l, err = g.look(ctx, repo, worktree, ""); err != nil {
			return d, err
		}
		defer l.close()
		l.borrowed = part.Objects
		l.left.Named = append(d.LeftOut.Named, l.left.Named...)
		d.LeftOut, d.Tree = l.left, l.tree
	} else if d.Tree, err = l.run(ctx, 0, "rev-parse", "--verify", "--end-of-options", to+"^{tree}"); err != nil {
		return d, err
	}
	d.Tree = strings.TrimSpace(d.Tree)
	if part.Objects != "" {
		_, err := l.run(ctx, 0, "cat-file", "-e", part.From)
		if exited(err, 1) { // any other error proves nothing
			return d, agency.Errorf(agency.CodeInvalidState, "the files before the last turn are no longer there: git has removed a part of them").
				WithHint("compare with the start of the run: leave --base out")
		}
	}
	out, err := l.run(ctx, 0, changesArgs(part.From, l.tree)...)
	if err != nil {
		return d, err
	}
	d.Files = parseChanges(out)
	if part.List || part.File != "" {
		if d.List, err = l.list(ctx, part.From); err != nil {
			return d, err
		}
	}
	d.Truncated = d.LeftOut.Files > 0 && part.File == "" // one file is whole without the others
	if part.List {
		return d, nil
	}
	return d, l.patch(ctx, part, &d)
}

// patch adds the patch of all files, or of the file that is asked for.
func (l *look) patch(ctx context.Context, part agency.DiffPart, d *agency.Diff) error {
	args := []string{
		"diff-tree", "-r", "-p", "--no-color", "--no-ext-diff", "--no-textconv", "--find-renames", "--submodule=short", allSubmodules,
	}
	if part.IgnoreSpace {
		args = append(args, "--ignore-all-space")
	}
	if part.Context > 0 {
		args = append(args, fmt.Sprintf("--unified=%d", part.Context))
	}
	args = append(args, "--end-of-options", part.From, l.tree, "--")
	if part.File != "" {
		at := slices.IndexFunc(d.List, func(f agency.FileDiff) bool { return f.Path == part.File || plain.Visible(f.Path) == part.File })
		if at < 0 {
			return agency.Errorf(agency.CodeInvalidPath, "%s is not among the files that changed", plain.Visible(part.File))
		}
		d.List = d.List[at : at+1]
		args = append(args, d.List[0].Path)
		if from := d.List[0].From; from != "" {
			args = append(args, from)
		}
	}
	patch, err := l.run(ctx, part.Limit+1, args...)
	if err != nil {
		return err
	}
	d.Patch = patch
	if len(patch) > part.Limit {
		// The patch ends with a whole line: half of one could be misread.
		d.Patch, d.Truncated = patch[:strings.LastIndexByte(patch[:part.Limit], '\n')+1], true
	}
	return nil
}

// list returns the files in which the tree differs from a commit, in the order of their paths.
func (l *look) list(ctx context.Context, from string) ([]agency.FileDiff, error) {
	out, err := l.run(ctx, 0, "diff-tree", "-r", "-z", "--raw", "--numstat", "--no-abbrev", "--find-renames", "--no-ext-diff", "--no-textconv", "--submodule=short", allSubmodules,
		"--end-of-options", from, l.tree, "--")
	if err != nil {
		return nil, err
	}
	return parseList(strings.Split(strings.TrimSuffix(out, "\x00"), "\x00"))
}

// parseList reads what git prints with --raw --numstat -z: first how each file changed, and then
// its counts of lines.
func parseList(fields []string) ([]agency.FileDiff, error) {
	files, byPath := []agency.FileDiff{}, map[string]int{}
	next := func() (field string) {
		if len(fields) > 0 {
			field, fields = fields[0], fields[1:]
		}
		return field
	}
	for len(fields) > 0 && strings.HasPrefix(fields[0], ":") {
		facts := strings.Fields(next())
		if len(facts) != 5 || facts[4] == "" {
			return nil, fmt.Errorf("read the list of files: %q", strings.Join(facts, " "))
		}
		f := agency.FileDiff{Status: facts[4][:1], Path: next(), Object: facts[3]}
		if f.Status == "R" || f.Status == "C" {
			f.From, f.Path = f.Path, next()
		}
		byPath[f.Path] = len(files)
		files = append(files, f)
	}
	for len(fields) > 0 {
		counts := strings.SplitN(next(), "\t", 3)
		if len(counts) != 3 {
			continue // the end of the list, when nothing changed
		}
		path := counts[2]
		if path == "" {
			next()
			path = next()
		}
		if at, ok := byPath[path]; ok {
			f := &files[at]
			f.Added, f.Deleted, f.Binary = count(counts[0]), count(counts[1]), counts[0] == "-"
		}
	}
	return files, nil
}

// count is a number of lines; a binary file has a dash instead.
func count(number string) int {
	n, err := strconv.Atoi(number)
	if err != nil {
		return 0
	}
	return n
}
