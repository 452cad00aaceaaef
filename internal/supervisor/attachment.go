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
	"syscall"

	"agency"
	"agency/internal/file"
	"agency/internal/plain"
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
			return "", nil, asAttachError(err, "look what the agent has put there: ls -la %s", plain.ShellWord(filepath.Join(worktree, agency.DotDir)))
		}
	}
	return attached(text, names), beneath(worktree, names), nil
}

// attached returns a text that names files.
func attached(text string, names []string) string {
	if len(names) == 0 {
		return text
	}
	line := "Attached: " + strings.Join(names, ", ")
	if text = strings.TrimRight(text, "\n"); text == "" {
		return line
	}
	return text + "\n\n" + line
}

// asAttachError returns the error for a file that cannot be attached. The hint is for a file whose
// place, or whose folder's place, is taken, missing or not accessible.
func asAttachError(err error, hint string, args ...any) error {
	for _, reason := range []error{file.ErrNotRegular, syscall.ENOTDIR, fs.ErrExist, fs.ErrNotExist, fs.ErrPermission} {
		if errors.Is(err, reason) {
			return agency.Errorf(agency.CodeInvalidPath, "attach a file: %w", err).WithHint(hint, args...)
		}
	}
	return asFileError(err)
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
			name := numbered(f, n)
			same := func(other string) bool { return strings.EqualFold(name, other) } // to the file systems of macOS
			if !slices.ContainsFunc(names, same) {
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

// mostCopies is how many different files of one name a worktree has at most.
const mostCopies = 1000

// addFile copies a file into a worktree, and returns its name there. It chooses another name if a
// different file has that of the attachment.
func addFile(worktree string, f agency.Attachment) (string, error) {
	for n := 1; n <= mostCopies; n++ {
		name := numbered(f, n)
		if err := putFile(worktree, name, f.Content); !errors.Is(err, fs.ErrExist) {
			return name, err
		}
	}
	return "", agency.Errorf(agency.CodeInvalidState, "%s has %d files of the name %s", filepath.Join(worktree, agency.FilesDir), mostCopies, f.PlainName()).
		WithHint("attach it under another name")
}

// putFile makes a file in a worktree, unless it is there already. The error is fs.ErrExist when
// something else has its name.
func putFile(worktree, name string, content []byte) error {
	err := file.CreateBeneath(worktree, name, content, 0o644)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	if there, readErr := file.ReadBeneath(worktree, name, int64(len(content))); readErr == nil && bytes.Equal(there, content) {
		return nil
	}
	return err
}
