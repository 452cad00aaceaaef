package git

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/google/uuid"

	"agency"
	"agency/internal/file"
)

// idFile holds the identity of a repository, relative to its git common directory.
const idFile = "agency/id"

// isID reports whether s is a version 4 UUID in its canonical spelling. It becomes the name of
// folders and locks.
func isID(s string) bool {
	id, err := uuid.Parse(s)
	return err == nil && id.Version() == 4 && id.Variant() == uuid.RFC4122 && id.String() == s
}

// ID returns the identity of the repository with a git common directory, read without git. It is
// empty when there is no repository, or one without an identity. An error proves neither.
func (g *Repos) ID(commonDir string) (string, error) { return readID(commonDir) }

// EnsureID returns the identity of a repository, and gives it the one that newID makes, a version 4
// UUID, if it has none. When several processes try at once, all return the same. E_INVALID_PATH:
// the file that holds it is damaged.
func (g *Repos) EnsureID(repo agency.Repo, newID func() string) (string, error) {
	id, err := readID(repo.CommonDir)
	if err != nil || id != "" {
		return id, err
	}
	err = file.CreateBeneath(repo.CommonDir, idFile, []byte(newID()+"\n"), 0o644)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return "", unwritable(repo, err)
	}
	return readID(repo.CommonDir)
}

// ReplaceID gives a repository that was copied with its identity another one.
func (g *Repos) ReplaceID(repo agency.Repo, id string) error {
	if err := file.WriteBeneath(repo.CommonDir, idFile, []byte(id+"\n"), 0o644); err != nil {
		return unwritable(repo, err)
	}
	_, err := readID(repo.CommonDir)
	return err
}

// readID returns the identity of a repository, or empty when it has none yet.
func readID(commonDir string) (string, error) {
	data, err := file.ReadBeneath(commonDir, idFile, 64)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err == nil {
		if id := strings.TrimSuffix(string(data), "\n"); isID(id) {
			return id, nil
		}
		err = errors.New("not a version 4 UUID")
	}
	path := filepath.Join(commonDir, idFile)
	return "", agency.Errorf(agency.CodeInvalidPath, "the repository's identity in %s cannot be used: %w", path, err).
		WithHint("remove that file and try again; agency makes a new one")
}

// unwritable returns the error when agency may not keep its few files in the git directory.
func unwritable(repo agency.Repo, err error) error {
	return agency.Errorf(agency.CodePermissionDenied, "cannot write into the git directory of %s: %w", repo.Root, err).
		WithHint("agency keeps an identity and an exclude rule in %s", repo.CommonDir)
}
