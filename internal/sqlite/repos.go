package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"agency"
)

// PutRepo records where a repository is. When it was known at another place, that is the event
// repository.moved, and from then on its runs name the new place.
func (s *runs) PutRepo(ctx context.Context, repo agency.Repo) error {
	return s.db.write(ctx, "record repository in", func(tx *transaction) error {
		return tx.putRepo(ctx, repo)
	})
}

func (tx *transaction) putRepo(ctx context.Context, repo agency.Repo) error {
	var root, commonDir string
	err := tx.QueryRowContext(ctx, `SELECT root, common_dir FROM repos WHERE fingerprint = ?`, repo.Fingerprint).Scan(&root, &commonDir)
	known := err == nil
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO repos (fingerprint, root, common_dir, seen_at_ms) VALUES (?, ?, ?, ?)
		ON CONFLICT (fingerprint) DO UPDATE
		SET root = excluded.root, common_dir = excluded.common_dir, seen_at_ms = excluded.seen_at_ms`,
		repo.Fingerprint, repo.Root, repo.CommonDir, tx.now.UnixMilli())
	if err != nil || !known || (root == repo.Root && commonDir == repo.CommonDir) {
		return err
	}
	// Its runs name its place, so they are changed too.
	_, err = tx.ExecContext(ctx, `UPDATE runs SET updated_at_ms = `+later+` WHERE repo = ?`, tx.now.UnixMilli(), repo.Fingerprint)
	if err != nil || root == repo.Root {
		return err
	}
	return tx.append(ctx, "", 0, agency.EventDraft{Type: agency.RepositoryMoved, Data: map[string]any{
		"fingerprint": repo.Fingerprint, "from": root, "to": repo.Root,
	}})
}

// Repo returns the repository with a fingerprint, nil when it is not known.
func (s *runs) Repo(ctx context.Context, fingerprint string) (*agency.Repo, error) {
	row, err := s.db.queryRow(ctx, `SELECT fingerprint, root, common_dir FROM repos WHERE fingerprint = ?`, fingerprint)
	if err != nil {
		return nil, problem("read repository from", s.db.path, err)
	}
	var r agency.Repo
	err = row.Scan(&r.Fingerprint, &r.Root, &r.CommonDir)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, problem("read repository from", s.db.path, err)
	}
	return &r, nil
}

// Repos returns all repositories that are known, by their roots.
func (s *runs) Repos(ctx context.Context) ([]agency.Repo, error) {
	rows, err := s.db.query(ctx, `SELECT fingerprint, root, common_dir FROM repos ORDER BY root`)
	if err != nil {
		return nil, problem("read repositories from", s.db.path, err)
	}
	repos, err := collect(rows, func(row scanner) (agency.Repo, error) {
		var r agency.Repo
		err := row.Scan(&r.Fingerprint, &r.Root, &r.CommonDir)
		return r, err
	})
	return repos, problem("read repositories from", s.db.path, err)
}
