package api

import (
	"context"
	"net"
	"net/http"
)

// DialWith makes a new client connect by dial instead of its socket.
func (c *Client) DialWith(dial func() (net.Conn, error)) {
	c.http.Transport = &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return dial() }}
}
