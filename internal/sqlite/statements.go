package sqlite

import (
	"context"
	"database/sql"
	"sync"
)

// statements are the queries of the readers that were prepared, by their text. Parsing a short
// query takes longer than running it. A text holds no values, so there are few.
type statements struct {
	mu     sync.Mutex
	byText map[string]*sql.Stmt
}

// reading returns a query of the readers, prepared once. It lives as long as their pool, which
// closes it.
func (s *database) reading(ctx context.Context, text string) (*sql.Stmt, error) {
	s.statements.mu.Lock()
	defer s.statements.mu.Unlock()
	if prepared := s.statements.byText[text]; prepared != nil {
		return prepared, nil
	}
	prepared, err := s.readers.PrepareContext(ctx, text) //nolint:sqlclosecheck // the pool closes it
	if err != nil {
		return nil, err
	}
	if s.statements.byText == nil {
		s.statements.byText = map[string]*sql.Stmt{}
	}
	s.statements.byText[text] = prepared
	return prepared, nil
}

// query runs a query of the readers that was prepared before or is prepared now.
func (s *database) query(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	prepared, err := s.reading(ctx, text) //nolint:sqlclosecheck // kept for the next query
	if err != nil {
		return nil, err
	}
	return prepared.QueryContext(ctx, args...)
}

// queryRow is query for one row.
func (s *database) queryRow(ctx context.Context, text string, args ...any) (*sql.Row, error) {
	prepared, err := s.reading(ctx, text) //nolint:sqlclosecheck // kept for the next query
	if err != nil {
		return nil, err
	}
	return prepared.QueryRowContext(ctx, args...), nil
}
