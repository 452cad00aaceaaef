package term

import (
	"context"
	"io"

	"agency"
)

// ReadAll reads standard input, in, to its end, but at most one byte more than most. Errors call
// the input what.
func ReadAll(ctx context.Context, in io.Reader, what string, most int64) (string, error) {
	data, err := io.ReadAll(io.LimitReader(Input(ctx, in), most+1))
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		return "", agency.Errorf(agency.CodeUsage, "read %s from standard input: %w", what, err)
	}
	return string(data), nil
}

// Input returns a reader of in whose reads end with ctx. A read of a terminal or a pipe cannot be
// cancelled, so each has its own goroutine, and an abandoned one ends with the process.
func Input(ctx context.Context, in io.Reader) io.Reader {
	return &cancelled{ctx: ctx, in: in, done: make(chan readResult, 1)}
}

// cancelled reads from in until ctx ends.
type cancelled struct {
	ctx  context.Context //nolint:containedctx // of the one command that reads
	in   io.Reader
	buf  []byte // the goroutine's own while it reads
	done chan readResult
}

type readResult struct {
	n   int
	err error
}

// Read implements io.Reader.
func (r *cancelled) Read(p []byte) (int, error) {
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
