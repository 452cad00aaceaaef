package cli

import (
	"context"
	"io"

	"agency"
)

// readInput reads standard input to its end, and a byte more than most of it at the most.
func (a *App) readInput(ctx context.Context, what string, most int64) (string, error) {
	data, err := io.ReadAll(io.LimitReader(a.input(ctx), most+1))
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		return "", agency.Errorf(agency.CodeUsage, "read %s from standard input: %w", what, err)
	}
	return string(data), nil
}

// input is standard input until ctx ends: a terminal or a pipe cannot be asked to give up a read, so each read is a goroutine's, and
// one that is left behind ends with the process.
func (a *App) input(ctx context.Context) io.Reader {
	return &input{ctx: ctx, in: a.In, done: make(chan readResult, 1)}
}

type input struct {
	ctx  context.Context //nolint:containedctx // of the one command that reads
	in   io.Reader
	buf  []byte // the goroutine's own while it reads
	done chan readResult
}

type readResult struct {
	n   int
	err error
}

func (r *input) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	if len(r.buf) < len(p) {
		r.buf = make([]byte, len(p))
	}
	buf := r.buf[:len(p)]
	go func() {
		n, err := r.in.Read(buf)
		r.done <- readResult{n, err}
	}()
	select {
	case got := <-r.done:
		return copy(p, buf[:got.n]), got.err
	case <-r.ctx.Done():
		return 0, r.ctx.Err()
	}
}
