package sqlite

import (
	"context"
	"database/sql/driver"

	"modernc.org/sqlite"
)

// connector opens connections that the end of a context does not cut off. The driver interrupts the
// statement of a context that is cancelled, such as by a client that was killed, and then discards
// the connection; when the file was deleted meanwhile, no other one can be opened. A statement of
// agency is short: it ends by itself, and a caller whose context is over gets the context's error.
type connector struct{ dsn string }

func (c connector) Driver() driver.Driver { return &sqlite.Driver{} }

func (c connector) Connect(context.Context) (driver.Conn, error) {
	opened, err := c.Driver().Open(c.dsn)
	if err != nil {
		return nil, err
	}
	return uncutConn{opened.(fullConn)}, nil
}

// fullConn is what the driver's connections can do.
type fullConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
}

type uncutConn struct{ fullConn }

func (c uncutConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	return c.fullConn.BeginTx(context.WithoutCancel(ctx), opts)
}

func (c uncutConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return c.fullConn.ExecContext(context.WithoutCancel(ctx), query, args)
}

func (c uncutConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return c.fullConn.QueryContext(context.WithoutCancel(ctx), query, args)
}

func (c uncutConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	prepared, err := c.fullConn.PrepareContext(context.WithoutCancel(ctx), query)
	if err != nil {
		return nil, err
	}
	return uncutStmt{prepared.(fullStmt)}, nil
}

// fullStmt is what the driver's statements can do.
type fullStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

type uncutStmt struct{ fullStmt }

func (s uncutStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.fullStmt.ExecContext(context.WithoutCancel(ctx), args)
}

func (s uncutStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.fullStmt.QueryContext(context.WithoutCancel(ctx), args)
}
