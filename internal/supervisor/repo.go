package supervisor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"agency"
	"agency/internal/plain"
	"agency/internal/supervisor/keyed"
)

// Repos knows the repositories of runs: their identity, their place, and whether their worktrees
// are in place.
type Repos struct {
	store  *Records
	git    Git
	random Random
	home   string      // data root
	locks  keyed.Locks // serialises changes to one repository
}

// admit gives the repository of a new run its identity, records its configuration, and refuses
// programs that the owner of the run may not make git run.
func (rs *Repos) admit(ctx context.Context, repo *agency.Repo, owner string) error {
	if err := rs.identify(ctx, repo); err != nil {
		return err
	}
	recorded, err := rs.git.Record(ctx, *repo)
	if err != nil {
		return err
	}
	*repo = recorded
	return rs.checkPrograms(ctx, repo, owner)
}

// identify gives the repository its permanent identity: the UUID in its git common directory. A
// repository that was moved keeps its runs, and git learns where its worktrees are; a copy gets a
// new identity.
func (rs *Repos) identify(ctx context.Context, repo *agency.Repo) error {
	id, err := rs.git.EnsureID(*repo, rs.random.uuid)
	if err != nil {
		return err
	}
	repo.Fingerprint = id
	return rs.place(ctx, repo, true)
}

// place records the place of a repository that has an identity. add allows adding a repository that
// is not recorded.
func (rs *Repos) place(ctx context.Context, repo *agency.Repo, add bool) error {
	known, err := rs.store.Repo(ctx, repo.Fingerprint)
	switch {
	case err != nil:
		return err
	case known == nil && !add, known != nil && known.Root == repo.Root:
		return nil
	case known == nil:
		return rs.store.PutRepo(ctx, *repo)
	}
	original, err := rs.find(ctx, *known)
	switch {
	case err != nil:
		return err
	case original == nil || original.Root != known.Root:
		err = rs.moved(ctx, *repo)
	case same(original.CommonDir, repo.CommonDir):
		return nil // a mount, or another spelling of the name where case does not matter
	default:
		repo.Fingerprint = rs.random.uuid()
		err = rs.git.ReplaceID(*repo, repo.Fingerprint)
	}
	if err != nil {
		return err
	}
	return rs.store.PutRepo(ctx, *repo)
}

// find looks for a recorded repository in its place. It returns nil when the repository is proven
// not to be there: the identity is missing, or is another one. A repository that git does not find,
// or a file that cannot be read, proves nothing and is an error.
func (rs *Repos) find(ctx context.Context, known agency.Repo) (*agency.Repo, error) {
	repo, err := rs.git.Discover(ctx, known.Root)
	if err == nil && repo.Fingerprint == known.Fingerprint {
		repo.GitConfig, repo.GitPrograms, repo.GitRemotes = known.GitConfig, known.GitPrograms, known.GitRemotes
		return &repo, nil
	}
	id, readErr := rs.git.ID(known.CommonDir)
	switch {
	case readErr != nil:
		return nil, readErr
	case id != known.Fingerprint:
		return nil, nil //nolint:nilnil // it is proven not to be there
	case err != nil:
		return nil, err
	default:
		return nil, agency.Errorf(agency.CodeGitFailed, "git finds another repository at %s than the one in %s", known.Root, known.CommonDir).
			WithHint("git -C %s rev-parse --git-common-dir", plain.ShellWord(known.Root))
	}
}

// Of returns the repository of a run, with everything that its agent committed in a sandbox. The
// error is E_INVALID_STATE when the repository is proven not to be in its place, where another one
// may be now.
func (rs *Repos) Of(ctx context.Context, r *agency.Run) (agency.Repo, error) {
	repo, err := rs.find(ctx, r.Repo)
	return rs.of(ctx, r, repo, err)
}

// places returns a function that does what Of does, for many runs at a time: it looks for each
// repository once.
func (rs *Repos) places() placing {
	var mu sync.Mutex
	known := map[agency.Repo]func() (*agency.Repo, error){}
	return func(ctx context.Context, r *agency.Run) (agency.Repo, error) {
		mu.Lock()
		find, ok := known[r.Repo]
		if !ok {
			find = sync.OnceValues(func() (*agency.Repo, error) { return rs.find(ctx, r.Repo) })
			known[r.Repo] = find
		}
		mu.Unlock()
		repo, err := find()
		return rs.of(ctx, r, repo, err)
	}
}

// of is Of with what find returned.
func (rs *Repos) of(ctx context.Context, r *agency.Run, repo *agency.Repo, err error) (agency.Repo, error) {
	if err != nil {
		return agency.Repo{}, err
	}
	if repo == nil {
		return agency.Repo{}, agency.Errorf(agency.CodeInvalidState, "the repository of %s is no longer at %s", r.Ref(), r.Repo.Root).
			WithHint("if it was moved, look at its new place once: agency ls --repo PATH")
	}
	return *repo, rs.importSandbox(ctx, r, *repo)
}

// importSandbox brings what the agent of a run committed in its sandbox into the repository.
func (rs *Repos) importSandbox(ctx context.Context, r *agency.Run, repo agency.Repo) error {
	if !r.Sandbox.Level.Confines() || r.RemovedAt != nil {
		return nil
	}
	unlock, err := rs.locks.Lock(ctx, "sandbox "+string(r.ID))
	if err != nil {
		return err
	}
	defer unlock()
	if r.Sandbox.Level.Shares() {
		return rs.git.Unlink(ctx, repo, r.Worktree, r.Branch)
	}
	return rs.git.Import(ctx, repo, r.Worktree, r.Branch, "refs/agency/sandbox/"+string(r.ID), filepath.Join(r.Dir, sandboxDir))
}

// checkPrograms refuses a run that an agent starts where git would run programs that were not
// configured when the agent's own run began: the agent could have configured them, and they would
// run without the agent's limits. The remotes of such a run are those of the agent's own run.
func (rs *Repos) checkPrograms(ctx context.Context, repo *agency.Repo, owner string) error {
	if owner == agency.User {
		return nil
	}
	r, err := rs.store.Run(ctx, agency.RunID(owner))
	if agency.IsCode(err, agency.CodeRunNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if r.Repo.Fingerprint == repo.Fingerprint {
		repo.GitRemotes = r.Repo.GitRemotes
	}
	if repo.GitPrograms == "" || r.Repo.GitPrograms == repo.GitPrograms {
		return nil
	}
	return agency.Errorf(agency.CodeTrustRequired, "the git configuration or hooks of %s name programs that they did not when %s began", repo.Root, r.Ref()).
		WithHint("the user can start the run: agency run --repo %s ...", plain.ShellWord(repo.Root))
}

// checkWorktree returns E_INVALID_STATE, with the present place, when the worktree of a run is not
// where it was made.
func (rs *Repos) checkWorktree(ctx context.Context, r *agency.Run, repo agency.Repo) error {
	at, err := rs.git.Worktree(ctx, repo, r.Worktree)
	if err != nil || at == r.Worktree {
		return err
	}
	if at != "" {
		return agency.Errorf(agency.CodeInvalidState, "the worktree of %s was moved from %s to %s", r.Ref(), r.Worktree, at).
			WithHint("move it back: git -C %s worktree move -- %s %s", plain.ShellWord(r.Repo.Root), plain.ShellWord(at), plain.ShellWord(r.Worktree))
	}
	if err := rs.movedHome(r); err != nil {
		return err
	}
	if _, err := os.Lstat(r.Worktree); !errors.Is(err, fs.ErrNotExist) {
		return agency.Errorf(agency.CodeInvalidState, "%s is no longer a worktree of %s", r.Worktree, r.Repo.Root).
			WithHint("repair it: git -C %s worktree repair", plain.ShellWord(r.Repo.Root))
	}
	return agency.Errorf(agency.CodeInvalidState, "the worktree of %s is no longer at %s", r.Ref(), r.Worktree).
		WithHint("its branch is %s; start a new run on it: agency run --base %s --prompt ...", r.Branch, plain.ShellWord(r.Branch))
}

// movedHome returns E_INVALID_STATE when a run was made in another data root that no longer exists.
func (rs *Repos) movedHome(r *agency.Run) error {
	before := filepath.Dir(filepath.Dir(r.Dir))
	if _, err := os.Lstat(r.Dir); before == rs.home || !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return agency.Errorf(agency.CodeInvalidState, "agency's data was moved from %s to %s, and the worktree of %s with it", before, rs.home, r.Ref()).
		WithHint("move it back, or put a link in its place: ln -s %s %s", plain.ShellWord(rs.home), plain.ShellWord(before))
}

// moved repairs the worktrees of a repository that is in a new place.
func (rs *Repos) moved(ctx context.Context, repo agency.Repo) error {
	runs, err := rs.store.Runs(ctx, agency.Filter{Repo: repo.Fingerprint})
	if err != nil {
		return err
	}
	worktrees := []string{}
	for i := range runs {
		if _, err := os.Lstat(runs[i].Worktree); !errors.Is(err, fs.ErrNotExist) {
			worktrees = append(worktrees, runs[i].Worktree)
		}
	}
	if len(worktrees) == 0 {
		return nil
	}
	return rs.git.Repair(ctx, repo, worktrees)
}

// same reports whether two paths lead to the same folder.
func same(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// refuseOwnTree refuses a repository inside agency's own data, which would be deleted when the run
// around it is removed. A run's own worktree is allowed, because it belongs to the repository
// outside.
func (rs *Repos) refuseOwnTree(repo agency.Repo) error {
	home, err := filepath.EvalSymlinks(rs.home)
	if err != nil {
		return nil //nolint:nilerr // a data root that cannot be resolved holds no repository
	}
	rel, err := filepath.Rel(home, repo.Root)
	if err != nil || rel == ".." || strings.HasPrefix(rel, "../") {
		return nil
	}
	return agency.Errorf(agency.CodeInvalidPath, "the repository %s lies inside agency's data root %s", repo.Root, home).
		WithHint("move it out first: it would be lost when the run around it is removed")
}

// LinkedBranch returns the branch of the linked worktree in which a user stands; empty in the main
// worktree, in that of a run, and on no branch.
func (rs *Repos) LinkedBranch(ctx context.Context, at agency.Repo) (string, error) {
	if at.Toplevel == "" || at.Toplevel == at.Root || rs.isRunWorktree(at) {
		return "", nil
	}
	return rs.git.BranchAt(ctx, at.Toplevel)
}

// isRunWorktree reports whether a client stands in the worktree of a run.
func (rs *Repos) isRunWorktree(at agency.Repo) bool {
	rel, err := filepath.Rel(filepath.Join(rs.home, "worktrees"), at.Toplevel)
	return err == nil && filepath.IsLocal(rel)
}

// Lock serialises changes to branches and worktrees of a repository, in this process and among all
// processes that share the data root.
func (rs *Repos) Lock(ctx context.Context, fingerprint string) (func(), error) {
	unlock, err := rs.locks.Lock(ctx, fingerprint)
	if err != nil {
		return nil, err
	}
	lock := flock.New(filepath.Join(rs.home, "locks", fingerprint+".lock"), flock.SetPermissions(0o600))
	if ok, err := lock.TryLockContext(ctx, 20*time.Millisecond); err != nil || !ok {
		unlock()
		return nil, agency.Errorf(agency.CodePermissionDenied, "lock %s: %w", lock.Path(), err)
	}
	return func() { _ = lock.Unlock(); unlock() }, nil
}

// inputLimit is the largest input, in bytes: fingerprints are for files of a size that a user
// passes on.
const inputLimit = 256 << 20

// fingerprint checks that each input is a regular file inside the repository, not reached through
// links that lead out of it, and returns its size and hash.
func fingerprint(repo agency.Repo, inputs []agency.SpecInput) ([]agency.Input, error) {
	if len(inputs) == 0 {
		return []agency.Input{}, nil
	}
	base := repo.Toplevel
	if base == "" {
		return nil, agency.Errorf(agency.CodeInvalidPath, "the repository %s is bare and has no files to give as input", repo.Root)
	}
	root, err := os.OpenRoot(base)
	if err != nil {
		return nil, agency.Errorf(agency.CodeInvalidPath, "open %s: %w", base, err)
	}
	defer func() { _ = root.Close() }()
	found := make([]agency.Input, 0, len(inputs))
	for _, in := range inputs {
		input, err := fingerprintOne(root, base, in.Path)
		if err != nil {
			return nil, err
		}
		found = append(found, input)
	}
	return found, nil
}

func fingerprintOne(root *os.Root, base, path string) (agency.Input, error) {
	rel := filepath.Clean(path)
	if filepath.IsAbs(path) {
		// The folder may be reached through a link that is not in the repository's own path.
		folder, err := filepath.EvalSymlinks(filepath.Dir(path))
		if err == nil {
			path = filepath.Join(folder, filepath.Base(path))
		}
		if rel, err = filepath.Rel(base, path); err != nil {
			return agency.Input{}, agency.Errorf(agency.CodeInvalidPath, "the input %s is not inside %s", path, base)
		}
	}
	if !filepath.IsLocal(rel) {
		return agency.Input{}, agency.Errorf(agency.CodeInvalidPath, "the input %q is not inside %s", path, base).
			WithHint("inputs are files of the repository; copy it there first")
	}
	info, err := root.Stat(rel)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return agency.Input{}, agency.Errorf(agency.CodeInvalidPath, "the input %q does not exist in %s", path, base)
	case err != nil:
		return agency.Input{}, agency.Errorf(agency.CodeInvalidPath, "the input %q cannot be used: %w", path, err).
			WithHint("an input must not be a link that leads out of the repository")
	case !info.Mode().IsRegular():
		return agency.Input{}, agency.Errorf(agency.CodeInputNotFile, "the input %q is not a regular file", path).WithHint("name files, one --input each")
	case info.Size() > inputLimit:
		return agency.Input{}, agency.Errorf(agency.CodeInvalidPath, "the input %q has %d bytes, more than %d", path, info.Size(), inputLimit)
	}
	f, err := root.Open(rel)
	if err != nil {
		return agency.Input{}, agency.Errorf(agency.CodeInvalidPath, "open the input %q: %w", path, err)
	}
	defer func() { _ = f.Close() }()
	sum := sha256.New()
	size, err := io.Copy(sum, io.LimitReader(f, inputLimit))
	if err != nil {
		return agency.Input{}, agency.Errorf(agency.CodeInvalidPath, "read the input %q: %w", path, err)
	}
	return agency.Input{Path: filepath.ToSlash(rel), Size: size, SHA256: hex.EncodeToString(sum.Sum(nil))}, nil
}

// At returns the repository of a folder, with its permanent identity, which it creates if needed.
func (rs *Repos) At(ctx context.Context, dir string) (agency.Repo, error) {
	repo, err := rs.git.Discover(ctx, dir)
	if err != nil {
		return repo, err
	}
	return repo, rs.identify(ctx, &repo)
}

// Exclude makes git ignore a folder of a repository, relative to its root.
func (rs *Repos) Exclude(ctx context.Context, repo agency.Repo, folder string) error {
	unlock, err := rs.Lock(ctx, repo.Fingerprint)
	if err != nil {
		return err
	}
	defer unlock()
	return rs.git.Exclude(repo, "/"+ignorePattern.Replace(folder)+"/")
}
