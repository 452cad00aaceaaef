package command

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"agency"
	"agency/internal/config"
	"agency/internal/file"
)

// EditConfig replaces the user's configuration file by what edit makes of it, and returns its path.
// edit may mend a mistake in the file.
func (d *Deps) EditConfig(edit func(cfg *config.Config, data []byte) ([]byte, error)) (path string, err error) {
	cfg, err := d.Config()
	if cfg == nil || cfg.Path == "" {
		return "", err
	}
	data, err := os.ReadFile(cfg.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", agency.Errorf(agency.CodeConfigInvalid, "read %s: %w", cfg.Path, file.Cause(err))
	}
	edited, err := edit(cfg, data)
	if err != nil {
		return "", err
	}
	target := cfg.Path
	if to, err := filepath.EvalSymlinks(cfg.Path); err == nil {
		target = to // users who keep the configuration elsewhere link to it
	}
	if err = os.MkdirAll(filepath.Dir(target), 0o700); err == nil {
		err = file.Edit(target, edited)
	}
	if err != nil {
		return "", agency.Errorf(agency.CodeConfigInvalid, "write %s: %w", cfg.Path, file.Cause(err))
	}
	return cfg.Path, nil
}
