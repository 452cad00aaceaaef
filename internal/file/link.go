package file

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// ReadLinkBeneath returns the target of the symbolic link rel in the folder root. No folder on the
// way may be a link (ErrNotRegular).
func ReadLinkBeneath(root, rel string) (string, error) {
	dir, name, err := openParent(root, rel, false)
	if err != nil {
		return "", err
	}
	defer func() { _ = dir.Close() }()
	return dir.Readlink(name)
}

// RemoveBeneath removes the file or folder rel in the folder root with everything in it, where
// everything beneath root is untrusted: no link is followed. A missing one is not an error.
func RemoveBeneath(root, rel string) error {
	dir, name, err := openParent(root, rel, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	if err := dir.RemoveAll(name); err != nil {
		return fmt.Errorf("remove %s: %w", filepath.Join(root, rel), err)
	}
	return nil
}
