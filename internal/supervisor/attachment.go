package supervisor

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"agency"
	"agency/internal/file"
)

// attach copies files into a worktree, and returns the text of the message with their names in the
// worktree, and their paths.
func attach(worktree, text string, files []agency.Attachment) (with string, paths []string, err error) {
	if len(files) == 0 {
		return text, nil, nil
	}
	if err := agency.CheckAttachments(files); err != nil {
		return "", nil, err
	}
	names := make([]string, len(files))
	for i, f := range files {
		if names[i], err = addFile(worktree, f); err != nil {
			return "", nil, asFileError(err)
		}
	}
	return attached(text, names), beneath(worktree, names), nil
}

// attached returns a text that names files.
func attached(text string, names []string) string {
	if len(names) == 0 {
		return text
	}
	return strings.TrimLeft(strings.TrimRight(text, "\n")+"\n\nAttached: "+strings.Join(names, ", "), "\n")
}

// beneath returns the paths of what is in a worktree.
func beneath(worktree string, names []string) []string {
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = filepath.Join(worktree, name)
	}
	return paths
}

// uniqueNames returns the names of files in a worktree that has none yet.
func uniqueNames(files []agency.Attachment) []string {
	names := make([]string, 0, len(files))
	for _, f := range files {
		for n := 1; ; n++ {
			if name := numbered(f, n); !slices.Contains(names, name) {
				names = append(names, name)
				break
			}
		}
	}
	return names
}

// numbered returns the name in a worktree of the nth file of the same name.
func numbered(f agency.Attachment, n int) string {
	name := f.PlainName()
	if n > 1 {
		ext := path.Ext(name)
		name = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, ext), n, ext)
	}
	return path.Join(agency.FilesDir, name)
}

// mostCopies is how many different files of one name a worktree has.
const mostCopies = 1000

// addFile copies a file into a worktree, and returns its name there. It takes another name where
// another file has that of the attachment.
func addFile(worktree string, f agency.Attachment) (string, error) {
	for n := 1; n <= mostCopies; n++ {
		name := numbered(f, n)
		err := file.CreateBeneath(worktree, name, f.Content, 0o644)
		if !errors.Is(err, fs.ErrExist) {
			return name, err
		}
		there, err := file.ReadBeneath(worktree, name, int64(len(f.Content))+1)
		if err == nil && bytes.Equal(there, f.Content) {
			return name, nil
		}
	}
	return "", agency.Errorf(agency.CodeInvalidState, "%s has %d files of the name %s", filepath.Join(worktree, agency.FilesDir), mostCopies, f.PlainName()).
		WithHint("attach it under another name")
}
