package sqlite

import (
	"context"

	"agency"
)

// Trusts reports whether a hash is trusted in a repository, and whether any hash is.
func (s *runs) Trusts(ctx context.Context, fingerprint, hash string) (trusted, any bool, err error) {
	err = s.db.readers.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM trust WHERE repo = ? AND hash = ?),
		EXISTS (SELECT 1 FROM trust WHERE repo = ?)`, fingerprint, hash, fingerprint).Scan(&trusted, &any)
	return trusted, any, problem("read trust from", s.db.path, err)
}

// GrantTrust records that a hash is trusted in a repository, with the event trust.granted. The
// second time it writes nothing.
func (s *runs) GrantTrust(ctx context.Context, repo agency.Repo, hash string) error {
	return s.db.write(ctx, "record trust in", func(tx *transaction) error {
		if err := tx.putRepo(ctx, repo); err != nil {
			return err
		}
		result, err := tx.ExecContext(ctx, `INSERT INTO trust (repo, hash, trusted_at_ms) VALUES (?, ?, ?) ON CONFLICT DO NOTHING`,
			repo.Fingerprint, hash, tx.now.UnixMilli())
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return err
		}
		return tx.append(ctx, "", 0, agency.EventDraft{Type: agency.TrustGranted, Data: map[string]any{"fingerprint": repo.Fingerprint, "repo": repo.Root, "hash": hash}})
	})
}

// RevokeTrust takes back everything that was trusted in a repository, with the event trust.revoked,
// and returns the number of hashes.
func (s *runs) RevokeTrust(ctx context.Context, repo agency.Repo) (revoked int, err error) {
	err = s.db.write(ctx, "take back trust in", func(tx *transaction) error {
		result, err := tx.ExecContext(ctx, `DELETE FROM trust WHERE repo = ?`, repo.Fingerprint)
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		if revoked = int(n); err != nil || n == 0 {
			return err
		}
		return tx.append(ctx, "", 0, agency.EventDraft{Type: agency.TrustRevoked, Data: map[string]any{"fingerprint": repo.Fingerprint, "repo": repo.Root}})
	})
	return revoked, err
}
