package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"agency"
	"agency/internal/duration"
)

// How a waiting client detects that the daemon no longer answers: it sends empty requests on
// another connection.
const (
	heartbeatEvery = 5 * time.Second
	// missedHeartbeats in a row take readTimeout. A single one may be missed because this process was
	// suspended.
	missedHeartbeats = int(readTimeout / heartbeatEvery)
)

// Answers reports whether a daemon answers.
func (c *Client) Answers(ctx context.Context) bool { return c.alive(ctx, readTimeout) == nil }

// alive returns nil when the daemon accepts requests, and ErrSilent when it does not within a time.
func (c *Client) alive(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, within, silentFor(within))
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://agency"+AlivePath, nil)
	if err != nil {
		return fmt.Errorf("make request of %s: %w", AlivePath, err)
	}
	return c.ask(r, nil)
}

// whileAlive returns a context for a request without a time limit. It ends, with the cause
// ErrSilent, when the daemon has accepted no requests for readTimeout. The caller must cancel it.
func (c *Client) whileAlive(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		tick := time.NewTicker(heartbeatEvery)
		defer tick.Stop()
		for missed := 0; missed < missedHeartbeats; {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			if err := c.alive(ctx, heartbeatEvery); err == nil || agency.IsCode(err, agency.CodeDaemonVersion) {
				missed = 0
			} else {
				missed++
			}
		}
		cancel(silentFor(readTimeout))
	}()
	return ctx, func() { cancel(nil) }
}

func silentFor(limit time.Duration) error {
	return fmt.Errorf("%w for %s", ErrSilent, duration.Text(limit))
}

// orSilent returns err, or the error for a silent daemon when that is why ctx ended.
func (c *Client) orSilent(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, ErrSilent) {
		return c.silent(cause)
	}
	return err
}

// notAsked returns the error for a request that was not sent, because the daemon did not confirm
// that it accepts requests.
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

// unanswered returns the error for a request to a daemon that then fell silent: it may have been
// carried out, or may still be.
func unanswered(err error) error {
	return agency.Errorf(agency.CodeDaemonLost, "%w; the request may be done already, or be done when the daemon continues", err).
		WithHint("%s; then see whether it was done: agency ls", agency.AsError(err).Hint)
}

// streamBody is the body of a stream. It ends when the daemon falls silent.
type streamBody struct {
	io.ReadCloser
	client *Client
	ctx    context.Context //nolint:containedctx // of the one request whose body it is
	cancel context.CancelFunc
}

func (b *streamBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	return n, b.client.orSilent(b.ctx, err)
}

func (b *streamBody) Close() error {
	b.cancel()
	return b.ReadCloser.Close()
}
