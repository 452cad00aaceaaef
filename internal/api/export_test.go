package api

import (
	"context"
	"net"
	"net/http"
)

// DialWith has a client that was just made connect by other means than its socket.
func (c *Client) DialWith(dial func() (net.Conn, error)) {
	c.http.Transport = &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return dial() }}
}
