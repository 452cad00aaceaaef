package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"agency"
)

// How a client that waits finds out that the daemon does not answer any more: it asks for nothing, on another connection.
const (
	pulseEvery = 5 * time.Second
	// missedPulses in a row are readTimeout. One alone may be due to this process, which somebody suspended.
	missedPulses = int(readTimeout / pulseEvery)
)

// alive returns when the daemon takes requests. It is ErrSilent when it does not within a time.
func (c *Client) alive(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, within, silentFor(within))
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://agency"+AlivePath, nil)
	if err != nil {
		return fmt.Errorf("make request of %s: %w", AlivePath, err)
	}
	return c.ask(r, nil)
}

// whileAlive is a context for what may take as long as it wants: it ends, for ErrSilent, when the daemon takes no requests for as long as
// readTimeout. The caller cancels it.
func (c *Client) whileAlive(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		tick := time.NewTicker(pulseEvery)
		defer tick.Stop()
		for missed := 0; missed < missedPulses; {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			if err := c.alive(ctx, pulseEvery); err == nil || agency.IsCode(err, agency.CodeDaemonVersion) {
				missed = 0
			} else {
				missed++
			}
		}
		cancel(silentFor(readTimeout))
	}()
	return ctx, func() { cancel(nil) }
}

func silentFor(limit time.Duration) error { return fmt.Errorf("%w for %s", ErrSilent, limit) }

// told is err, or that the daemon is silent where ctx ended for that.
func (c *Client) told(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, ErrSilent) {
		return c.silent(cause)
	}
	return err
}

// notAsked is why a daemon was not asked to do something: it did not say that it takes requests.
func notAsked(err error) error {
	switch {
	case errors.Is(err, ErrSilent):
		e := agency.AsError(err)
		return agency.Errorf(e.Code, "%w; nothing was asked of it", err).WithHint("%s", e.Hint)
	case agency.IsCode(err, agency.CodeDaemonLost):
		return agency.Errorf(agency.CodeDaemonConnectFailed, "the daemon went away before it was asked: %w", errors.Unwrap(err))
	default:
		return err
	}
}

// unanswered is the error for what was asked of a daemon that then fell silent: it may have been done, or come to be done.
func unanswered(err error) error {
	return agency.Errorf(agency.CodeDaemonLost, "%w; what was asked may be done, or come to be done when it goes on", err).
		WithHint("%s; then see what became of it: agency ls", agency.AsError(err).Hint)
}

// streamBody is the body of a stream, which ends when the daemon falls silent.
type streamBody struct {
	io.ReadCloser
	client *Client
	ctx    context.Context //nolint:containedctx // of the one request whose body it is
	cancel context.CancelFunc
}

func (b *streamBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	return n, b.client.told(b.ctx, err)
}

func (b *streamBody) Close() error {
	b.cancel()
	return b.ReadCloser.Close()
}
