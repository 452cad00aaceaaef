package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"agency"
)

// Follow calls handle for every event after since, in order, each once and without a gap, until ctx
// ends or handle fails. run limits it to one run; empty means all. Follow outlives daemons: it
// starts a daemon again that went away, or waits for the next one after a stop. Then it calls again
// before the next event, because what a daemon keeps in memory may have changed without an event.
// It returns E_DAEMON_LOST when daemons keep going away as soon as they have started.
func (c *Client) Follow(ctx context.Context, since int64, run string, again func(), handle func(agency.Event) error) error {
	c.follows.Store(true)
	var r retries
	query := encodeQuery(EventsQuery{Since: since, Run: run})
	for {
		begun := time.Now()
		next, err := c.events(ctx, since, query, handle)
		if err = r.next(ctx, c, err, next != since, begun); err != nil {
			return err
		}
		since = next
		query.Set("since", strconv.FormatInt(since, 10))
		again()
	}
}

// events is Follow for the life of one daemon: then it returns E_DAEMON_LOST. next is the last
// event that was handled.
func (c *Client) events(ctx context.Context, since int64, query url.Values, handle func(agency.Event) error) (next int64, err error) {
	answer, err := c.get(ctx, EventsPath, query)
	if err != nil {
		return since, err
	}
	defer func() { _ = answer.Body.Close() }()
	keepRun(query, answer)
	lines := bufio.NewReader(answer.Body)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			if ctx.Err() != nil {
				return since, ctx.Err()
			}
			return since, lost(err)
		}
		data, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "data: ")
		if !ok {
			continue
		}
		var event agency.Event
		if err := json.Unmarshal([]byte(data), &event); err != nil {
			return since, agency.Errorf(agency.CodeDaemonConnectFailed, "an event cannot be read: %w", err)
		}
		if err := handle(event); err != nil {
			return since, err
		}
		since = event.Seq
	}
}

// keepRun replaces the run in query by the id of the run that the stream belongs to.
func keepRun(query url.Values, answer *http.Response) {
	if id := answer.Header.Get(StreamRunHeader); id != "" {
		query.Set("run", id)
	}
}

// retries limits how often a stream is opened again after its daemon went away.
type retries struct{ inARow int }

// The limits. A stream that lasted longer than lasted, or returned anything, does not count as a
// failure.
const (
	mostRetries = 20
	firstPause  = 20 * time.Millisecond
	longPause   = 2 * time.Second
	lasted      = 10 * time.Second
)

// next waits until the stream that ended with err may be opened again, or returns why it may not.
// It does not wait for a daemon that this client has not met yet.
func (r *retries) next(ctx context.Context, c *Client, err error, moved bool, begun time.Time) error {
	away := agency.IsCode(err, agency.CodeDaemonLost) || agency.IsCode(err, agency.CodeDaemonConnectFailed) || agency.IsCode(err, agency.CodeDaemonStartFailed)
	if !away || c.Start == nil || !c.met.Load() || errors.Is(err, ErrSilent) && !c.starting() {
		return err
	}
	if moved || time.Since(begun) >= lasted {
		r.inARow = 0
	}
	if r.inARow++; r.inARow > mostRetries {
		return agency.Errorf(agency.CodeDaemonLost, "the daemon went away %d times in a row: %w", r.inARow, err).WithHint("agency daemon logs")
	}
	select {
	case <-time.After(min(firstPause<<(r.inARow-1), longPause)):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// LogsRequest selects a part of a run's log.
type LogsRequest struct {
	Run     string
	Stream  string // runner (default), stdout, stderr or wire
	Attempt int    // 0 means the newest
	SinceMS int64  // Unix milliseconds; 0 means from the beginning
	Tail    *int   // of that, only so many of the last lines, and what follows them
	Follow  bool   // until the attempt has ended
}

// Logs opens a log as bytes. The caller must close it. With Follow, it ends after the attempt has
// ended. It outlives daemons as Follow does, and continues with the byte at which a daemon went
// away.
func (c *Client) Logs(ctx context.Context, r LogsRequest) (io.ReadCloser, error) {
	if r.Follow {
		c.follows.Store(true)
	}
	l := &logStream{c: c, ctx: ctx, query: encodeQuery(LogsQuery{
		Run: r.Run, Stream: r.Stream, Attempt: r.Attempt, Since: r.SinceMS, Tail: r.Tail, Follow: r.Follow,
	})}
	return l, l.open()
}

// logStream reads a log from one daemon after another.
type logStream struct {
	c     *Client
	ctx   context.Context //nolint:containedctx // of the one call whose result it is
	query url.Values
	body  io.ReadCloser
	at    int64 // offset of the next byte in the log; -1 when the daemon does not send it
	moved bool  // anything was read since the last open
	begun time.Time
	retry retries
}

func (l *logStream) open() error {
	answer, err := l.c.get(l.ctx, LogsPath, l.query) //nolint:bodyclose // it is l.body from here on, which Close closes
	if err != nil {
		return err
	}
	l.body, l.moved, l.begun = answer.Body, false, time.Now()
	l.at = -1
	if at, err := strconv.ParseInt(answer.Header.Get(LogOffsetHeader), 10, 64); err == nil {
		l.at = at
	}
	keepRun(l.query, answer)
	// Another attempt may be the newest when the stream is opened again.
	if attempt := answer.Header.Get(LogAttemptHeader); attempt != "" {
		l.query.Set("attempt", attempt)
	}
	return nil
}

func (l *logStream) Read(p []byte) (int, error) {
	for {
		n, err := l.body.Read(p)
		if l.at >= 0 {
			l.at += int64(n)
		}
		l.moved = l.moved || n > 0
		switch {
		case n > 0 || err == nil:
			return n, nil
		case l.ctx.Err() != nil:
			return 0, l.ctx.Err()
		case errors.Is(err, io.EOF) || l.at < 0:
			return 0, err
		}
		if err := l.reopen(err); err != nil {
			return 0, err
		}
	}
}

// reopen continues at the byte where the stream broke off.
func (l *logStream) reopen(err error) error {
	_ = l.body.Close()
	l.body = http.NoBody
	l.query.Set("offset", strconv.FormatInt(l.at, 10))
	at := l.at
	for err = lost(err); ; {
		if err = l.retry.next(l.ctx, l.c, err, l.moved, l.begun); err != nil {
			return err
		}
		if err = l.open(); err == nil {
			return nil
		}
		l.at, l.moved, l.begun = at, false, time.Now()
	}
}

func (l *logStream) Close() error { return l.body.Close() }
