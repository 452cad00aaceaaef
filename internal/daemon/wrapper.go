package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/runner"
	"agency/internal/supervisor"
)

// wrapperProtocol is what a wrapper's connection is upgraded to.
const wrapperProtocol = "agency-wrapper"

// upgrade takes the connection over from HTTP. The client says nothing before it has read the answer.
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

// serveWrapper speaks with the wrapper of one attempt for as long as it lives.
func (d *Daemon) serveWrapper(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != wrapperProtocol {
		reply(w, nil, agency.Errorf(agency.CodeUsage, "%s wants Upgrade: %s", api.WrapperPath, wrapperProtocol))
		return
	}
	conn, err := upgrade(w, wrapperProtocol)
	if err != nil {
		d.Log.Warn("accept wrapper", "err", err)
		return
	}
	link := runner.NewLink(conn)
	defer func() { _ = link.Close() }()
	ctx := context.WithoutCancel(r.Context())
	hello, err := link.Hello(ctx)
	if err != nil {
		d.Log.Warn("greet wrapper", "err", err)
		return
	}
	id, attempt := hello.RunID, hello.Attempt
	err = d.sup.Connect(ctx, supervisor.WrapperHello{RunID: id, Attempt: attempt, Token: hello.Token, Process: hello.Wrapper}, link)
	if err != nil {
		d.Log.Warn("refuse wrapper", "run", id, "attempt", attempt, "err", err)
		if !agency.IsCode(err, agency.CodePermissionDenied) && !agency.IsCode(err, agency.CodeRunNotFound) {
			return // it is not the wrapper's fault, so it may come again
		}
		if err := link.Refuse(err); err != nil {
			d.Log.Debug("refuse wrapper", "run", id, "err", err)
		}
		return
	}
	defer d.sup.Disconnect(id, attempt, link)
	err = link.Serve(func(u runner.Update) error {
		return d.sup.Update(ctx, id, attempt, supervisor.WrapperUpdate(u))
	})
	if err != nil {
		d.Log.Debug("wrapper connection ended", "run", id, "err", err)
	}
}
