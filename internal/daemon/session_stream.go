package daemon

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/scheduler"
	"agency/internal/session"
)

const (
	updatesAtOnce = 256         // lines of one connection that are applied together
	answerLimit   = time.Minute // for a client to read its answers
)

// streamUpdates takes reports on one session as long as the connection lasts, and answers each, in
// order, once it is durable. Reports that arrive during a transaction go into the next one.
func (s streams) streamUpdates(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != api.UpdatesProtocol {
		reply(w, nil, agency.Errorf(agency.CodeUsage, "%s wants Upgrade: %s", api.SessionUpdatesPath, api.UpdatesProtocol))
		return
	}
	var req api.SessionRequest
	if err := api.DecodeQuery(r.URL.Query(), &req); err != nil {
		reply(w, nil, err)
		return
	}
	if err := s.policy.Allow(withCaller(r), api.SessionUpdatesPath, &req); err != nil {
		reply(w, nil, err)
		return
	}
	found, err := s.finder.Find(r.Context(), req.Session, req.Dir)
	if err != nil {
		reply(w, nil, err)
		return
	}
	conn, err := upgrade(w, api.UpdatesProtocol)
	if err != nil {
		s.log.Warn("accept updates", "session", found.ID, "err", err)
		return
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := s.untilStop(context.WithoutCancel(r.Context()))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if err := s.serveUpdates(ctx, conn, found.ID); err != nil && ctx.Err() == nil {
		s.log.Debug("connection for updates ended", "session", found.ID, "err", err)
	}
}

// serveUpdates returns when the client has closed its side.
func (s streams) serveUpdates(ctx context.Context, conn net.Conn, id agency.SessionID) error {
	in := bufio.NewReaderSize(conn, api.UpdateLimit)
	var out bytes.Buffer
	for {
		updates, refused, readErr := readUpdates(in)
		done := s.sched.Update(ctx, id, updates)
		out.Reset()
		for _, err := range refused {
			if err == nil {
				err, done = done[0], done[1:]
			}
			if err := answerUpdate(&out, err); err != nil {
				return err
			}
		}
		if err := conn.SetWriteDeadline(time.Now().Add(answerLimit)); err != nil {
			return err
		}
		if _, err := conn.Write(out.Bytes()); err != nil {
			return err
		}
		if errors.Is(readErr, io.EOF) {
			return nil
		}
		if readErr != nil {
			return readErr
		}
	}
}

// readUpdates waits for a line and takes all complete lines after it. refused has an entry for each
// line: an error for an invalid one, nil for an update.
func readUpdates(in *bufio.Reader) (updates []scheduler.Update, refused []error, err error) {
	for len(refused) == 0 || len(refused) < updatesAtOnce && lineWaits(in) {
		line, err := in.ReadSlice('\n')
		if err != nil && (len(line) == 0 || !errors.Is(err, io.EOF)) {
			if errors.Is(err, bufio.ErrBufferFull) {
				refused = append(refused, agency.Errorf(agency.CodeUsage, "the line has more than %d bytes", api.UpdateLimit).WithHint("one update is one line"))
			}
			return updates, refused, err
		}
		var u api.SessionUpdate
		if err := api.Decode(line, &u); err != nil {
			refused = append(refused, agency.Errorf(agency.CodeUsage, "it is not an update: %w", err).WithHint(`such as {"agent": "001", "action": "start"}`))
			continue
		}
		updates, refused = append(updates, session.UpdateOf(&u)), append(refused, nil)
	}
	return updates, refused, nil
}

// lineWaits reports whether a whole line has arrived already.
func lineWaits(in *bufio.Reader) bool {
	waiting, _ := in.Peek(in.Buffered())
	return bytes.IndexByte(waiting, '\n') >= 0
}

// answerUpdate writes the answer to one line.
func answerUpdate(out *bytes.Buffer, err error) error {
	if err == nil {
		out.WriteString("{\"ok\":true}\n")
		return nil
	}
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(api.UpdateReply{Error: api.Failure(err).Error}); err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	return nil
}
