package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"agency"
)

// BackupFolder is where a store is backed up before its schema changes, beside its file.
const BackupFolder = "backups"

// BackupName returns the name of an automatic backup. Sorted by name, backups are in the order in
// which they were made.
func BackupName(at time.Time, suffix string) string {
	return "agency-" + at.UTC().Format("20060102T150405.000Z") + suffix + ".db"
}

// Backup writes a copy of the store, as it is at this moment, to a new file of mode 0600. It does
// not disturb writers. An existing file is refused with E_DB_ERROR; after a crash the copy is whole
// or absent.
func (s *database) Backup(ctx context.Context, path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return problem("back up to", path, err)
	}
	_, err = os.Lstat(path)
	if err == nil {
		return agency.Errorf(agency.CodeDBError, "back up to %s: the file exists", path).WithHint("choose another file name")
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return problem("back up to", path, err)
	}
	temp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return problem("back up to", path, err)
	}
	defer func() { _ = os.Remove(temp.Name()) }()
	if err := s.vacuumInto(ctx, temp.Name()); err != nil {
		return errors.Join(err, temp.Close())
	}
	if err := errors.Join(temp.Sync(), temp.Close()); err != nil {
		return problem("back up to", path, err)
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return problem("back up to", path, err)
	}
	return problem("back up to", path, syncDir(filepath.Dir(path)))
}

// vacuumInto fills an empty file.
func (s *database) vacuumInto(ctx context.Context, path string) error {
	_, err := s.copier.ExecContext(ctx, "VACUUM INTO ?", path)
	return problem("back up", s.path, err)
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Check reads the whole file and returns what is wrong with it, as E_DB_ERROR with the findings in
// its details.
func (s *database) Check(ctx context.Context) error {
	findings, err := s.findings(ctx)
	if err != nil {
		return problem("check", s.path, err)
	}
	if len(findings) == 0 {
		return nil
	}
	return agency.Errorf(agency.CodeDBError, "check database %s: the file is damaged", s.path).
		WithHint("%s", restoreHint(s.path)).WithDetail("findings", findings)
}

func (s *database) findings(ctx context.Context) ([]string, error) {
	rows, err := s.readers.QueryContext(ctx, `SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok'
		UNION ALL SELECT 'row ' || rowid || ' of ' || "table" || ' lacks its parent in ' || parent FROM pragma_foreign_key_check`)
	if err != nil {
		return nil, err
	}
	return collect(rows, func(row scanner) (string, error) {
		var finding string
		err := row.Scan(&finding)
		return finding, err
	})
}
