package git

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"

	"agency"
	"agency/internal/file"
	"agency/internal/plain"
)

// sha is a full object name, SHA-1 or SHA-256.
var sha = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`) })

// ResolveCommit returns the full name of the commit that ref means in the worktree dir: a branch, a
// tag, a name, HEAD~3. An empty ref means HEAD. E_EMPTY_REPO: ref means HEAD, and the repository
// has no commit at all. E_BAD_REF: there is no such commit.
func (g *Refs) ResolveCommit(ctx context.Context, dir, ref string) (string, error) {
	if ref == "" {
		ref = "HEAD"
	}
	bad := agency.Errorf(agency.CodeBadRef, "%q is not a commit of the repository at %s", ref, dir).
		WithHint("name a branch, a tag or a commit; see: git log --oneline --all")
	if strings.HasPrefix(ref, "-") || strings.ContainsRune(ref, 0) {
		return "", bad
	}
	var at *found
	if ref == "HEAD" {
		if at, _, _ = g.recalled(dir); at != nil {
			if id := g.headOf(at); id != "" {
				return id, nil
			}
		}
	}
	ask := func(args ...string) (string, error) { return g.discover(ctx, dir, args...) }
	id, err := commitOf(ask, ref)
	if err == nil && id != "" && at != nil {
		g.mu.Lock()
		g.heads[at.repo.CommonDir] = id
		g.mu.Unlock()
	}
	if err != nil || id != "" {
		return id, err
	}
	common, err := ask("rev-parse", "--path-format=absolute", "--git-common-dir")
	if err == nil {
		err = proveMissing(ask, strings.TrimSuffix(common, "\n"), ref)
	}
	if err != nil {
		return "", err
	}
	if ref == "HEAD" {
		out, err := ask("rev-list", "--max-count=1", "--all")
		if err != nil {
			return "", err
		}
		if out == "" {
			return "", agency.Errorf(agency.CodeEmptyRepo, "the repository at %s has no commit yet", dir).
				WithHint(`make the first one: git commit --allow-empty -m "first commit"`)
		}
	}
	return "", bad.WithHint("%s", g.otherRefs(ctx, dir, ref))
}

// packedLimit is the longest list of packed refs that agency reads itself; git searches longer ones
// faster.
const packedLimit = 256 << 10

// headOf returns the commit of the HEAD of a worktree, read without git; empty when only git can
// tell. Git has confirmed each returned name as that of a commit.
func (g *program) headOf(at *found) string {
	head, err := file.ReadRegular(filepath.Join(at.gitDir, "HEAD"), 4<<10)
	id := strings.TrimSuffix(string(head), "\n")
	if ref, is := strings.CutPrefix(id, "ref: "); err == nil && is && strings.HasPrefix(ref, "refs/heads/") && filepath.IsLocal(ref) {
		var data []byte
		data, err = file.ReadBeneath(at.repo.CommonDir, ref, 4<<10)
		id = strings.TrimSuffix(string(data), "\n")
		if missing(err) {
			data, err = file.ReadBeneath(at.repo.CommonDir, "packed-refs", packedLimit)
			before, _, found := strings.Cut(string(data), " "+ref+"\n")
			if id = ""; found {
				id = before[strings.LastIndexByte(before, '\n')+1:]
			}
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil || !sha().MatchString(id) || g.heads[at.repo.CommonDir] != id {
		return ""
	}
	return id
}

// asker runs git with arguments in one place and returns what it wrote to its standard output.
type asker func(args ...string) (string, error)

// commitOf returns the full name of the commit that ref means. It is empty when git knows none,
// which proves nothing: git says the same of a ref, or of a commit, that it cannot read.
func commitOf(ask asker, ref string) (string, error) {
	peeled := ref + "^{commit}"
	if strings.HasPrefix(ref, ":/") { // the rest of it is a text to search for, and the result is a commit
		peeled = ref
	}
	for range 2 { // git may have been short of memory or descriptors
		out, err := ask("rev-parse", "--verify", "--quiet", "--end-of-options", peeled)
		if id := strings.TrimSpace(out); err == nil && sha().MatchString(id) {
			return id, nil
		}
		// 128 is the status for a missing entry of a reflog, or a missing upstream. For other refs
		// it means a failure of git.
		if err != nil && !exited(err, 1) && (!exited(err, 128) || !strings.Contains(ref, "@{")) {
			return "", err
		}
	}
	return "", nil
}

// proveMissing returns an error unless a repository certainly has no commit for ref, after git
// found none. HEAD has none while its branch does not exist. When git knows the commit of HEAD, or
// that HEAD has none, it can read the repository, and its answer about other refs counts. For the
// full name of a branch, there must also be no file of the ref.
func proveMissing(ask asker, commonDir, ref string) error {
	refs := []string{}
	if strings.HasPrefix(ref, "refs/heads/") {
		refs = append(refs, ref)
	}
	head, err := commitOf(ask, "HEAD")
	if err == nil && (head == "" || ref == "HEAD") {
		var branch string
		branch, err = ask("symbolic-ref", "--quiet", "HEAD")
		refs = append(refs, strings.TrimSuffix(branch, "\n"))
	}
	if err != nil {
		return fmt.Errorf("read the commit of HEAD: %w", err)
	}
	for _, ref := range refs {
		there, err := hasRef(ask, commonDir, ref)
		if err != nil {
			return fmt.Errorf("look for %s: %w", ref, err)
		}
		if there {
			return agency.Errorf(agency.CodeGitFailed, "git cannot read the commit of %s in %s", ref, commonDir).
				WithHint("try again; if it keeps failing, look at the repository: git fsck")
		}
	}
	return nil
}

// otherRefs returns which branches and tags a user who wrote ref could have meant.
func (g *Refs) otherRefs(ctx context.Context, dir, ref string) string {
	const most = 3
	ref = strings.TrimPrefix(ref, "refs/heads/")
	out, err := g.discover(ctx, dir, "for-each-ref", "--count=1000", "--format=%(refname:lstrip=2)", "refs/heads", "refs/remotes", "refs/tags")
	known := strings.Fields(out)
	if err != nil || len(known) == 0 {
		return "name a branch, a tag or a commit; see: git log --oneline --all"
	}
	var near []string
	if nearest := plain.Nearest(ref, known); nearest != "" {
		near = append(near, nearest)
	}
	for _, name := range known {
		if len(near) < most && !slices.Contains(near, name) && len(ref) > 2 && strings.Contains(name, ref) {
			near = append(near, name)
		}
	}
	if len(near) > 0 {
		return "did you mean " + strings.Join(near, ", ") + "? all there are: git branch --all"
	}
	slices.SortStableFunc(known, func(a, b string) int { return cmp.Compare(ownBranch(a), ownBranch(b)) })
	return "there are " + strings.Join(known[:min(most, len(known))], ", ") + "; all of them: git branch --all"
}

// ownBranch is 1 for a branch that agency made, which a user rarely means, and 0 for others.
func ownBranch(name string) int {
	if strings.HasPrefix(name, "agency/") || strings.HasPrefix(name, "agency-") {
		return 1
	}
	return 0
}

// OwnBranch returns the name of a branch that agency makes: the wanted one below agency/ or, when a
// branch called agency is in the way, one with a dash, such as agency-fix-login. Git keeps branches
// like files in folders.
func (g *Refs) OwnBranch(repo agency.Repo, branch string) string {
	folder, rest, _ := strings.Cut(branch, "/")
	ref := "refs/heads/" + folder
	if info, err := os.Lstat(filepath.Join(repo.CommonDir, ref)); err == nil && info.Mode().IsRegular() {
		return folder + "-" + rest
	}
	packed, err := os.Open(filepath.Join(repo.CommonDir, "packed-refs"))
	if err != nil {
		return branch // most repositories have none; git refuses an impossible name
	}
	defer func() { _ = packed.Close() }()
	for lines := bufio.NewScanner(packed); lines.Scan(); {
		if _, name, _ := strings.Cut(lines.Text(), " "); name == ref {
			return folder + "-" + rest
		}
	}
	return branch
}

// longestPart is how many bytes a part of a branch's name may have: git keeps it as the name of a
// file, and the name of its lock is five bytes longer.
const longestPart = 250

// CheckBranch returns nil when a branch of this name can be created. E_BAD_REF: git does not allow
// the name. E_BRANCH_EXISTS: the name is taken, or another branch is in the way, as "a" is for
// "a/b".
func (g *Refs) CheckBranch(ctx context.Context, repo agency.Repo, branch string) error {
	bad := agency.Errorf(agency.CodeBadRef, "%q is not a name that git allows for a branch", branch).
		WithHint("use letters, digits, - and /, for example agency/fix-login")
	if branch == "@" || strings.ContainsRune(branch, 0) { // "@" may be a branch, but commands read it as HEAD
		return bad
	}
	for part := range strings.SplitSeq(branch, "/") {
		if len(part) > longestPart {
			return agency.Errorf(agency.CodeBadRef, "the branch %.20q... has a part of %d bytes", branch, len(part)).
				WithHint("git keeps branches as files: %d bytes between two slashes are the most", longestPart)
		}
	}
	out, err := g.run(ctx, repo, "check-ref-format", "--branch", branch)
	switch {
	case said(err, "is not a valid branch name"), err == nil && out != branch+"\n": // the output differs for @{-1}, which means another branch
		return bad
	case err != nil:
		return err
	}
	// A pattern matches the ref itself and all refs below it.
	args := []string{"for-each-ref", "--format=%(refname:lstrip=2)"}
	for name := branch; name != ""; name = name[:max(strings.LastIndexByte(name, '/'), 0)] {
		args = append(args, "refs/heads/"+name)
	}
	if out, err = g.run(ctx, repo, args...); err != nil {
		return err
	}
	for taken := range strings.Lines(out) {
		taken = strings.TrimSuffix(taken, "\n")
		switch {
		case taken == branch:
			return agency.Errorf(agency.CodeBranchExists, "the branch %q exists already", branch).
				WithHint("give another name with --branch")
		case strings.HasPrefix(branch, taken+"/"), strings.HasPrefix(taken, branch+"/"):
			return agency.Errorf(agency.CodeBranchExists,
				"the branch %q cannot be made because the branch %q exists: git keeps branches like files in folders", branch, taken).
				WithHint("give another name with --branch")
		}
	}
	return nil
}

// DeleteBranch deletes a branch, merged or not. A missing branch is not an error. E_CLEANUP_FAILED:
// git refuses, as it does while a worktree has the branch checked out.
func (g *Refs) DeleteBranch(ctx context.Context, repo agency.Repo, branch string) error {
	_, err := g.do(ctx, writing(repo, "refs/heads/"+branch, "branch", "-D", "--", branch))
	if err == nil {
		return nil
	}
	if said(err, "not found") { // also when git cannot read the branch
		if there, missing := g.HasBranch(ctx, repo, branch); missing == nil && !there {
			return nil
		}
	}
	return uncleaned(err, "delete branch %q", branch)
}

// DeleteBranchAt deletes a branch if it points to the commit, where it holds no work of its own.
// Otherwise, and for a missing branch, it does nothing.
func (g *Refs) DeleteBranchAt(ctx context.Context, repo agency.Repo, branch, commit string) error {
	ref := "refs/heads/" + branch
	err := g.writeRef(ctx, repo, ref, nil, "update-ref", "--no-deref", "-d", "--end-of-options", ref, commit)
	if err == nil || said(err, "but expected") {
		return nil
	}
	// The lock of a killed git process is in the way even of a branch that was never made.
	if there, missing := g.HasBranch(ctx, repo, branch); missing == nil && !there {
		return nil
	}
	return uncleaned(err, "delete branch %q", branch)
}

// DeleteBranchIn deletes a branch whose commits are all in the history of a commit. Otherwise, and
// for a missing branch, it does nothing.
func (g *Refs) DeleteBranchIn(ctx context.Context, repo agency.Repo, branch, commit string) error {
	tip, err := g.CommitOf(ctx, repo, branch)
	if agency.IsCode(err, agency.CodeBadRef) {
		return nil
	}
	if err != nil {
		return uncleaned(err, "delete branch %q", branch)
	}
	if all, err := g.history.Descends(ctx, repo, commit, tip); err != nil || !all {
		return err
	}
	return g.DeleteBranchAt(ctx, repo, branch, tip)
}

// HasBranch reports whether there is a branch of that name. A branch that cannot be read is an
// error. It is false for what cannot be the name of a branch, such as HEAD~3.
func (g *Refs) HasBranch(ctx context.Context, repo agency.Repo, branch string) (bool, error) {
	there, err := hasRef(func(args ...string) (string, error) { return g.run(ctx, repo, args...) }, repo.CommonDir, "refs/heads/"+branch)
	if err != nil {
		if _, bad := g.run(ctx, repo, "check-ref-format", "refs/heads/"+branch); exited(bad, 1) {
			return false, nil
		}
		return false, fmt.Errorf("look for branch %q: %w", branch, err)
	}
	return there, nil
}

// hasRef reports whether the repository with a common directory has a ref. A ref that cannot be
// read is an error.
func hasRef(ask asker, commonDir, ref string) (bool, error) {
	_, err := ask("show-ref", "--verify", "--quiet", "--", ref)
	if exited(err, 1) {
		// Git ends with 1 also when it cannot read the file of the ref.
		info, missing := os.Lstat(filepath.Join(commonDir, ref))
		switch {
		case errors.Is(missing, fs.ErrNotExist), errors.Is(missing, syscall.ENOTDIR), missing == nil && info.IsDir():
			return false, nil
		case missing != nil:
			err = missing
		}
	}
	return err == nil, err
}

// Contained returns the tip of a branch that holds nothing of its own: all its commits are in the
// commit from or in the branch base, which can also be a remote-tracking one, or HEAD for the
// branch that is checked out in the main worktree. It is empty for a branch with commits of its
// own, for one that a worktree has checked out, and for one that does not exist.
func (g *Refs) Contained(ctx context.Context, repo agency.Repo, branch, from, base string) (tip string, err error) {
	out, err := g.run(ctx, repo, "for-each-ref", "--format=%(objectname) %(worktreepath)", "refs/heads/"+branch)
	tip, at, _ := strings.Cut(strings.TrimRight(out, "\n"), " ")
	if err != nil || tip == "" || at != "" || strings.Contains(at, "\n") {
		return "", err
	}
	if base == "" || base == "HEAD" {
		if base, err = g.run(ctx, repo, "symbolic-ref", "--quiet", "HEAD"); exited(err, 1) {
			base, err = "", nil // the main worktree is on no branch
		}
		if err != nil {
			return "", err
		}
		base = strings.TrimPrefix(strings.TrimSpace(base), "refs/heads/")
	}
	args := []string{"rev-list", "--max-count=1", tip, "--not", from}
	for _, ref := range []string{"refs/heads/" + base, "refs/remotes/" + base} {
		if found, err := g.run(ctx, repo, "for-each-ref", "--format=%(refname)", ref); err != nil {
			return "", err
		} else if base != "" && base != branch && strings.TrimSpace(found) == ref {
			args = append(args, ref)
		}
	}
	own, err := g.run(ctx, repo, append(args, "--")...)
	if err != nil || own != "" {
		return "", err
	}
	// By now, the commit from may be in no other branch: it can come from another run.
	if only, err := g.Unmerged(ctx, repo, branch); err != nil || only {
		return "", err
	}
	return tip, nil
}

// Unmerged reports whether the branch has commits that are in no other branch, in no
// remote-tracking branch, in no tag, not in a detached HEAD of the main worktree and not in the
// known commits: work that would be lost with it. A branch that does not exist has none.
func (g *Refs) Unmerged(ctx context.Context, repo agency.Repo, branch string, known ...string) (bool, error) {
	args := []string{"rev-list", "--max-count=1", "refs/heads/" + branch, "--not", "--exclude=" + branch, "--branches", "--remotes", "--tags"}
	if _, err := g.run(ctx, repo, "symbolic-ref", "--quiet", "HEAD"); exited(err, 1) {
		known = append(slices.Clone(known), "HEAD")
	} else if err != nil {
		return false, err
	}
	args = append(args, known...)
	out, err := g.run(ctx, repo, append(args, "--")...)
	if said(err, "bad revision 'refs/heads/"+branch+"'") {
		// Git gives the same answer for a branch that it cannot read.
		if there, missing := g.HasBranch(ctx, repo, branch); missing == nil && !there {
			return false, nil
		}
	}
	return out != "", err
}

// Head returns the branch that the main worktree has checked out, or that a bare repository names
// as its own; empty when it is on no branch.
func (g *Refs) Head(ctx context.Context, repo agency.Repo) (string, error) {
	out, err := g.run(ctx, repo, "symbolic-ref", "--quiet", "HEAD")
	return branchNamed(out, err)
}

// BranchAt returns the branch that the worktree dir has checked out; empty when it is on no branch.
func (g *Refs) BranchAt(ctx context.Context, dir string) (string, error) {
	out, err := g.discover(ctx, dir, "symbolic-ref", "--quiet", "HEAD")
	return branchNamed(out, err)
}

// branchNamed returns the branch that git symbolic-ref printed; empty for any other ref, and for none.
func branchNamed(out string, err error) (string, error) {
	if exited(err, 1) {
		return "", nil
	}
	branch, ok := strings.CutPrefix(strings.TrimSpace(out), "refs/heads/")
	if err == nil && !ok {
		return "", nil
	}
	return branch, err
}

// Alias returns the ref that a symbolic branch points to; empty for an ordinary branch.
func (g *Refs) Alias(ctx context.Context, repo agency.Repo, branch string) (string, error) {
	out, err := g.run(ctx, repo, "symbolic-ref", "--quiet", "refs/heads/"+branch)
	if exited(err, 1) {
		return "", nil
	}
	return strings.TrimSpace(out), err
}

// CommitOf returns the commit of a branch. A branch that does not exist is E_BAD_REF.
func (g *Refs) CommitOf(ctx context.Context, repo agency.Repo, branch string) (string, error) {
	return g.ResolveCommit(ctx, repo.Root, "refs/heads/"+branch)
}

// Branches lists the branches whose names begin with a prefix that ends in a slash, and that no
// worktree has checked out.
func (g *Refs) Branches(ctx context.Context, repo agency.Repo, prefix string) ([]string, error) {
	out, err := g.run(ctx, repo, "for-each-ref", "--format=%(if)%(worktreepath)%(then)%(else)%(refname:lstrip=2)%(end)", "refs/heads/"+prefix)
	if err != nil {
		return nil, fmt.Errorf("list branches of %s: %w", repo.Root, err)
	}
	return strings.Fields(out), nil
}

// mostRefs is how many names RefNames returns at most.
const mostRefs = "500"

// RefNames lists branches, tags and branches of remotes, those with the newest commits first.
func (g *Refs) RefNames(ctx context.Context, repo agency.Repo) ([]string, error) {
	out, err := g.run(ctx, repo, "for-each-ref", "--sort=-creatordate", "--count="+mostRefs, "--format=%(if)%(symref)%(then)%(else)%(refname:lstrip=2)%(end)", "refs/heads", "refs/tags", "refs/remotes")
	if err != nil {
		return nil, fmt.Errorf("list branches and tags of %s: %w", repo.Root, err)
	}
	return strings.Fields(out), nil
}

// OwnRefs returns the branches of a repository, and the refs below refs/agency, by their full
// names.
func (g *Refs) OwnRefs(ctx context.Context, repo agency.Repo) (branches, saved []string, err error) {
	out, err := g.run(ctx, repo, "for-each-ref", "--format=%(refname)", "refs/heads", "refs/agency")
	if err != nil {
		return nil, nil, fmt.Errorf("list the refs of %s: %w", repo.Root, err)
	}
	for ref := range strings.FieldsSeq(out) {
		if strings.HasPrefix(ref, "refs/heads/") {
			branches = append(branches, ref)
		} else {
			saved = append(saved, ref)
		}
	}
	return branches, saved, nil
}

// reflog returns the reflog of a branch, the newest entry first. It is empty when there is
// no such branch, or no reflog of it.
func (g *Refs) reflog(ctx context.Context, repo agency.Repo, branch string) ([]string, error) {
	if there, err := g.HasBranch(ctx, repo, branch); err != nil || !there {
		return nil, err
	}
	out, err := g.run(ctx, repo, "log", "--walk-reflogs", "--no-show-signature", "--format=%gs", "refs/heads/"+branch, "--")
	if err != nil || out == "" {
		return nil, err
	}
	return strings.Split(strings.TrimSuffix(out, "\n"), "\n"), nil
}
