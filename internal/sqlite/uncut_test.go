package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// A request that is given up leaves the connections as they are: when the file is deleted after it,
// the store is still read, and copied.
func TestGivenUpRequestKeepsConnections(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agency.db")
	s := openAt(t, path)
	const long = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000) SELECT max(i) FROM n`
	for _, db := range []*sql.DB{s.Writer(), s.Readers(), s.Copier()} {
		ctx, giveUp := context.WithCancel(t.Context())
		given := make(chan error, 1)
		go func() { given <- db.QueryRowContext(ctx, long).Scan(new(int)) }()
		for db.Stats().InUse == 0 && len(given) == 0 { // on a busy machine the query may be over before it is seen
			runtime.Gosched()
		}
		giveUp()
		if err := <-given; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}

	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := s.Backup(t.Context(), filepath.Join(t.TempDir(), "copy.db")); err != nil {
		t.Error(err)
	}
	if err := s.Check(t.Context()); err != nil {
		t.Error(err)
	}
}
