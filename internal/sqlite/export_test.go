package sqlite

import (
	"context"
	"database/sql"
	"time"
)

// OpenSteps opens a store whose schema is made by other migrations than the product's.
func OpenSteps(ctx context.Context, path string, now func() time.Time, steps []string) (*Store, error) {
	return open(ctx, path, now, schema{steps: steps})
}

// Migrations returns the product's migrations.
func Migrations() ([]string, error) { return migrations() }

// WriterDSN returns the writer's connection string.
func WriterDSN(path string) string { return dsn(path, "rw", writerSettings()) }

// CheckWriter reads the writer's settings back from a connection.
func CheckWriter(ctx context.Context, db *sql.DB, path string) error {
	return checkSettings(ctx, db, path, writerSettings())
}

// InboxByID and InboxWaiting are the queries that find the messages to acknowledge.
const (
	InboxByID    = inboxByID
	InboxWaiting = inboxWaiting
)

// Writer returns the connection that writes.
func (s *Store) Writer() *sql.DB { return s.writer }

// Readers returns the connections that read.
func (s *Store) Readers() *sql.DB { return s.readers }

// Copier returns the connection that copies the store.
func (s *Store) Copier() *sql.DB { return s.copier }
