package daemon

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"sync"

	"agency"
	"agency/internal/api"
	"agency/internal/runner"
	"agency/internal/socket"
	"agency/internal/supervisor"
)

// asker is who sent a request. Who that is is found out when something depends on it, and once.
type asker struct {
	claims supervisor.Caller
	tools  bool // the request comes from the tools of an agent
	pid    int  // of the process that connected; 0 is not known

	once sync.Once
	id   string
	err  error
}

// callerKey is where a request's context carries its asker, and peerKey a connection's the process at its other end.
type (
	callerKey struct{}
	peerKey   struct{}
)

// withPeer notes which process made a connection.
func withPeer(ctx context.Context, conn net.Conn) context.Context {
	peer, err := socket.PeerOf(conn)
	if err != nil {
		return ctx
	}
	return context.WithValue(ctx, peerKey{}, peer.PID)
}

// withCaller notes who a request says to be from.
func withCaller(r *http.Request) context.Context {
	attempt, _ := strconv.Atoi(r.Header.Get(api.AttemptHeader))
	pid, _ := r.Context().Value(peerKey{}).(int)
	return context.WithValue(r.Context(), callerKey{}, &asker{
		claims: supervisor.Caller{Run: agency.RunID(r.Header.Get(api.RunHeader)), Attempt: attempt, Token: r.Header.Get(api.TokenHeader)},
		tools:  r.Header.Get(api.ToolsHeader) != "", pid: pid,
	})
}

// caller is who sent a request, proven: the id of a run, or "user".
func (d *Daemon) caller(ctx context.Context) (string, error) {
	a, ok := ctx.Value(callerKey{}).(*asker)
	if !ok {
		return agency.User, nil
	}
	a.once.Do(func() { a.id, a.err = d.identify(ctx, a) })
	return a.id, a.err
}

// identify goes by the token, and by the process that connected: one of a run is that run whatever it has dropped, and no run
// speaks for another.
func (d *Daemon) identify(ctx context.Context, a *asker) (string, error) {
	claimed, err := d.sup.Callers.Identify(ctx, a.claims)
	if err != nil || a.pid == 0 {
		return claimed, err
	}
	attempts := d.sup.LiveAttempts()
	live := make([]runner.Live, 0, len(attempts))
	for _, l := range attempts {
		live = append(live, runner.Live(l))
	}
	id, err := runner.RunOfProcess(a.pid, live, d.serving())
	switch {
	case err != nil && claimed == agency.User:
		return "", agency.Errorf(agency.CodePermissionDenied, "whose process sent this cannot be told: %w", err).WithHint("try it again")
	case err != nil || id == "" || claimed == string(id):
		return claimed, nil
	case claimed == agency.User:
		return string(id), nil
	default:
		return "", agency.Errorf(agency.CodePermissionDenied, "the token is that of %s, and the process belongs to %s", claimed, id).
			WithHint("AGENCY_RUN_ID, AGENCY_ATTEMPT and AGENCY_TOKEN are those that the run was given")
	}
}

// agent is the run that sent a request, nil when it is the person, and whether an agent asks: a run, or tools that one uses.
func (d *Daemon) agent(ctx context.Context) (by *agency.Run, asks bool, err error) {
	who, err := d.caller(ctx)
	if err != nil {
		return nil, false, err
	}
	if who == agency.User {
		a, ok := ctx.Value(callerKey{}).(*asker)
		return nil, ok && a.tools, nil
	}
	by, err = d.store.Run(ctx, agency.RunID(who))
	return by, true, err
}
