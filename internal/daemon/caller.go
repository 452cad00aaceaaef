package daemon

import (
	"context"
	"net"
	"net/http"
	"strconv"

	"agency"
	"agency/internal/api"
	"agency/internal/policy"
	"agency/internal/socket"
	"agency/internal/supervisor"
)

// peerKey is where the context of a connection carries the id of the process at its other end.
type peerKey struct{}

// withPeer notes which process made a connection.
func withPeer(ctx context.Context, conn net.Conn) context.Context {
	peer, err := socket.PeerOf(conn)
	if err != nil {
		return ctx
	}
	return context.WithValue(ctx, peerKey{}, peer.PID)
}

// withCaller notes who a request says it is from.
func withCaller(r *http.Request) context.Context {
	attempt, _ := strconv.Atoi(r.Header.Get(api.AttemptHeader))
	pid, _ := r.Context().Value(peerKey{}).(int)
	return policy.WithClaim(r.Context(), &policy.Claim{
		Caller: supervisor.Caller{Run: agency.RunID(r.Header.Get(api.RunHeader)), Attempt: attempt, Token: r.Header.Get(api.TokenHeader)},
		Tools:  r.Header.Get(api.ToolsHeader) != "", PID: pid,
	})
}
