package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/runner"
	"agency/internal/supervisor"
	"agency/internal/tmux"
)

// wrapperProtocol is the protocol that a wrapper's connection is upgraded to.
const wrapperProtocol = "agency-wrapper"

// upgrade takes over the connection from HTTP. The client sends nothing before it has read the
// answer.
func upgrade(w http.ResponseWriter, protocol string) (net.Conn, error) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, fmt.Errorf("take over connection: %w", err)
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	_, err = fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", protocol)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// wrappers serves the connections of wrappers.
type wrappers struct {
	accepts  *supervisor.Wrappers
	tmux     *tmux.Tmux
	log      *slog.Logger
	refusals refusals
}

// serve serves the connection of one attempt's wrapper, which lasts as long as the wrapper
// lives.
func (s *wrappers) serve(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != wrapperProtocol {
		reply(w, nil, agency.Errorf(agency.CodeUsage, "%s wants Upgrade: %s", api.WrapperPath, wrapperProtocol))
		return
	}
	conn, err := upgrade(w, wrapperProtocol)
	if err != nil {
		s.log.Warn("accept wrapper", "err", err)
		return
	}
	link := runner.NewLink(conn, s.tmux.Socket())
	known := false
	defer func() {
		if !known {
			_ = link.Close()
		}
	}()
	ctx := context.WithoutCancel(r.Context())
	hello, err := s.greet(ctx, link)
	if err != nil {
		return
	}
	known = true
	// The request ends here. Otherwise its buffers and the deep stack of its goroutine would take
	// most of the memory of an idle run.
	go s.hear(ctx, link, hello.RunID, hello.Attempt)
}

// greet reads a wrapper's identity and checks that the wrapper belongs to its attempt. If the record
// has another or a later attempt, or the end of this one, the wrapper is refused for good.
func (s *wrappers) greet(ctx context.Context, link *runner.Link) (agency.WrapperHello, error) {
	hello, err := link.Hello(ctx)
	if err != nil {
		s.refusals.warn(s.log, time.Now(), "greet wrapper", "err", err)
		return hello, err
	}
	if peer, _ := ctx.Value(peerKey{}).(int); peer != hello.Wrapper.PID {
		hello.Wrapper = agency.Process{} // what a process reports under another process's id is not trusted
	}
	if err = s.accepts.Connect(ctx, hello, link); err == nil {
		return hello, nil
	}
	s.refusals.warn(s.log, time.Now(), "refuse wrapper", "run", hello.RunID, "attempt", hello.Attempt, "err", err)
	// After any other error the wrapper may connect again: even a run that the record does not know
	// may come back, when the user rebuilds a database that was restored from an older backup.
	if agency.IsCode(err, agency.CodePermissionDenied) {
		if err := link.Refuse(err); err != nil {
			s.log.Debug("refuse wrapper", "run", hello.RunID, "err", err)
		}
	}
	return hello, err
}

// hear handles a wrapper's updates until it disconnects. A panic ends only the connection,
// and the wrapper connects again.
func (s *wrappers) hear(ctx context.Context, link *runner.Link, id agency.RunID, attempt int) {
	defer func() { _ = link.Close() }()
	defer s.accepts.Disconnect(id, attempt, link)
	defer func() {
		if defect := recover(); defect != nil {
			s.log.Error("wrapper connection failed", "run", id, "defect", defect, "stack", string(debug.Stack()))
		}
	}()
	err := link.Serve(func(u agency.WrapperUpdate) error { return s.accepts.Update(ctx, id, attempt, u) })
	if err != nil {
		s.log.Debug("wrapper connection ended", "run", id, "err", err)
	}
}
