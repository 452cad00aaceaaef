package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime/debug"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/runner"
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

// serveWrapper serves the connection of one attempt's wrapper, which lasts as long as the wrapper
// lives.
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
	link := runner.NewLink(conn, d.tmux.Socket())
	known := false
	defer func() {
		if !known {
			_ = link.Close()
		}
	}()
	ctx := context.WithoutCancel(r.Context())
	hello, err := d.greetWrapper(ctx, link)
	if err != nil {
		return
	}
	known = true
	// The request ends here. Otherwise its buffers and the deep stack of its goroutine would be
	// most of the memory of an idle run.
	go d.hearWrapper(ctx, link, hello.RunID, hello.Attempt)
}

// greetWrapper reads a wrapper's identity and checks that it belongs to its attempt. One that does
// not is told not to connect again.
func (d *Daemon) greetWrapper(ctx context.Context, link *runner.Link) (agency.WrapperHello, error) {
	hello, err := link.Hello(ctx)
	if err != nil {
		d.refusals.warn(d.Log, time.Now(), "greet wrapper", "err", err)
		return hello, err
	}
	if peer, _ := ctx.Value(peerKey{}).(int); peer != hello.Wrapper.PID {
		hello.Wrapper = agency.Process{} // what a process reports under another process's id is not trusted
	}
	if err = d.sup.Connect(ctx, hello, link); err == nil {
		return hello, nil
	}
	d.refusals.warn(d.Log, time.Now(), "refuse wrapper", "run", hello.RunID, "attempt", hello.Attempt, "err", err)
	// Any other error is not the wrapper's fault, so it may connect again.
	if agency.IsCode(err, agency.CodePermissionDenied) || agency.IsCode(err, agency.CodeRunNotFound) {
		if err := link.Refuse(err); err != nil {
			d.Log.Debug("refuse wrapper", "run", hello.RunID, "err", err)
		}
	}
	return hello, err
}

// hearWrapper handles a wrapper's updates until it disconnects. A panic ends only the connection,
// and the wrapper connects again.
func (d *Daemon) hearWrapper(ctx context.Context, link *runner.Link, id agency.RunID, attempt int) {
	defer func() { _ = link.Close() }()
	defer d.sup.Disconnect(id, attempt, link)
	defer func() {
		if defect := recover(); defect != nil {
			d.Log.Error("wrapper connection failed", "run", id, "defect", defect, "stack", string(debug.Stack()))
		}
	}()
	err := link.Serve(func(u agency.WrapperUpdate) error { return d.sup.Update(ctx, id, attempt, u) })
	if err != nil {
		d.Log.Debug("wrapper connection ended", "run", id, "err", err)
	}
}
