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

// peerKey is the key, in the context of a connection, of the id of the process at the other end.
type peerKey struct{}

// withPeer adds to a context the process that made a connection.
func withPeer(ctx context.Context, conn net.Conn) context.Context {
	peer, err := socket.PeerOf(conn)
	if err != nil {
		return ctx
	}
	return context.WithValue(ctx, peerKey{}, peer.PID)
}

// withCaller returns the context of a request with the sender that it claims.
func withCaller(r *http.Request) context.Context {
	attempt, _ := strconv.Atoi(r.Header.Get(api.AttemptHeader))
	pid, _ := r.Context().Value(peerKey{}).(int)
	return policy.WithClaim(r.Context(), &policy.Claim{
		Caller: supervisor.Caller{Run: agency.RunID(r.Header.Get(api.RunHeader)), Attempt: attempt, Token: r.Header.Get(api.TokenHeader)},
		Tools:  r.Header.Get(api.ToolsHeader) != "", FromSandbox: r.Header.Get(api.InsideHeader) != "", PID: pid,
	})
}
