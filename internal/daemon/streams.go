package daemon

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/policy"
	"agency/internal/scheduler"
	"agency/internal/sqlite"
	"agency/internal/supervisor"
	"agency/internal/supervisor/observe"
)

// eventPage is how many events are read from the store at a time.
const eventPage = 1000

// streams serve what is not one request and one answer.
type streams struct {
	sup        *supervisor.Supervisor
	store      *sqlite.Store
	sched      *scheduler.Scheduler
	finder     scheduler.Finder
	policy     *policy.Policy
	log        *slog.Logger
	untilStop  untilStop
	isStopping func() bool
}

// streamEvents sends the events after a given one, without a gap, and then new ones, as server-sent
// events.
func (s streams) streamEvents(w http.ResponseWriter, r *http.Request) {
	query, err := eventsQuery(r)
	if err == nil {
		err = s.policy.Allow(withCaller(r), api.EventsPath, &query)
	}
	if err != nil {
		reply(w, nil, err)
		return
	}
	since, run := query.Since, agency.RunID("")
	if query.Run != "" {
		found, err := s.sup.Records.Resolve(r.Context(), query.Run)
		if err != nil {
			reply(w, nil, err)
			return
		}
		run = found.ID
		w.Header().Set(api.StreamRunHeader, string(run))
	}
	last, err := s.store.LastSeq(r.Context())
	if err != nil {
		reply(w, nil, err)
		return
	}
	since = min(since, last) // a client may be ahead of a record that was restored since
	ctx, cancel := s.untilStop(r.Context())
	defer cancel()
	out := http.NewResponseController(w)
	w.WriteHeader(http.StatusOK)
	_ = out.Flush()
	for {
		changed := s.store.Changed()
		if since, err = s.sendEvents(ctx, w, since, run); err != nil {
			return
		}
		if out.Flush() != nil {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// sendEvents sends the events after a given one that are in the record, and returns the number of the
// last one.
func (s streams) sendEvents(ctx context.Context, w io.Writer, since int64, run agency.RunID) (last int64, err error) {
	for {
		events, err := s.store.Events(ctx, since, run, eventPage)
		if err != nil {
			return since, err
		}
		for _, event := range events {
			var data bytes.Buffer
			if err := api.EncodeLine(&data, event); err != nil {
				s.log.Error("encode event", "seq", event.Seq, "err", err)
				return since, err
			}
			if _, err := fmt.Fprintf(w, "id: %d\nevent: %s\ndata: %s\n", event.Seq, event.Type, data.Bytes()); err != nil {
				return since, err
			}
			since = event.Seq
		}
		if len(events) < eventPage {
			return since, nil
		}
	}
}

// eventsQuery returns which events a stream sends. A client that reconnects sends the number of its
// last event as Last-Event-ID.
func eventsQuery(r *http.Request) (query api.EventsQuery, err error) {
	values := r.URL.Query()
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		values.Set("since", last)
	}
	return query, api.DecodeQuery(values, &query)
}

// streamLogs sends a log as bytes.
func (s streams) streamLogs(w http.ResponseWriter, r *http.Request) {
	req, err := s.logRequest(r)
	if err != nil {
		reply(w, nil, err)
		return
	}
	found, err := s.sup.Records.Resolve(r.Context(), req.Ref)
	if err != nil {
		reply(w, nil, err)
		return
	}
	req.Ref = string(found.ID)
	ctx, cancel := s.untilStop(r.Context())
	defer cancel()
	begun := false
	flush := func() { _ = http.NewResponseController(w).Flush() }
	err = s.sup.Query.Logs(ctx, req, w, func(attempt int, offset int64) {
		begun = true
		w.Header().Set(api.StreamRunHeader, req.Ref)
		w.Header().Set(api.LogAttemptHeader, strconv.Itoa(attempt))
		w.Header().Set(api.LogOffsetHeader, strconv.FormatInt(offset, 10))
		flush() // sends the headers, so that the client of an inactive agent has the position, too
	}, flush)
	switch {
	case err != nil && !begun:
		if s.isStopping() {
			err = errStopping() // whatever the error was: the next daemon can answer
		}
		reply(w, nil, err)
	case err != nil || req.Follow && s.isStopping():
		if err != nil && ctx.Err() == nil {
			s.log.Warn("send log", "run", req.Ref, "err", err)
		}
		// The log may continue: a clean end would mean that it is complete.
		panic(http.ErrAbortHandler)
	}
}

// logRequest returns the request for a log that the caller may read.
func (s streams) logRequest(r *http.Request) (supervisor.LogRequest, error) {
	var q api.LogsQuery
	err := api.DecodeQuery(r.URL.Query(), &q)
	if err == nil {
		err = s.policy.Allow(withCaller(r), api.LogsPath, &q)
	}
	req := supervisor.LogRequest{Ref: q.Run, Stream: q.Stream, Attempt: q.Attempt, From: observe.LogStart{Tail: q.Tail, Offset: q.Offset}, Follow: q.Follow}
	if q.Since != 0 {
		req.From.Since = time.UnixMilli(q.Since)
	}
	switch req.Stream {
	case "":
		req.Stream = "runner"
	case "runner", "stdout", "stderr", "wire":
	default:
		return req, agency.Errorf(agency.CodeUsage, "the stream is %q, none of runner, stdout, stderr, wire", req.Stream)
	}
	return req, err
}
