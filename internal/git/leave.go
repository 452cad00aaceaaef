package git

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"agency"
	"agency/internal/file"
)

// Leave removes what agency keeps in the git directory of a repository: its identity, and the lines
// of info/exclude about agency's folder. Branches and saved work stay. A second call changes
// nothing. Hold the repository's lock.
func (g *Repos) Leave(repo agency.Repo) error {
	if err := file.RemoveBeneath(repo.CommonDir, path.Dir(idFile)); err != nil {
		return unwritable(repo, err)
	}
	text, err := file.ReadBeneath(repo.CommonDir, excludeFile, 1<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return unwritable(repo, err)
	}
	lines := slices.Collect(strings.Lines(string(text)))
	kept := slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return strings.HasPrefix(line, "/"+agency.DotDir+"/") })
	if len(kept) == len(lines) {
		return nil
	}
	info, err := os.Lstat(filepath.Join(repo.CommonDir, excludeFile))
	if err == nil {
		err = file.WriteBeneath(repo.CommonDir, excludeFile, []byte(strings.Join(kept, "")), info.Mode().Perm())
	}
	if err != nil {
		return unwritable(repo, err)
	}
	return nil
}
