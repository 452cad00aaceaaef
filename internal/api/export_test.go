package api

import (
	"context"
	"net"
	"net/http"

	"agency"
)

// DialWith makes a new client connect by dial instead of its socket.
func (c *Client) DialWith(dial func() (net.Conn, error)) {
	c.http.Transport = &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return dial() }}
}

// ReadRows reads the answer that a RunRows wrote.
func ReadRows(body []byte) (*ListRunsResponse, []agency.Span, bool) {
	resp, spans := &ListRunsResponse{}, []agency.Span{}
	ok := readRows(string(body), resp, &spans)
	return resp, spans, ok
}

// Indent indents JSON text as Encode does.
func Indent(text []byte) []byte { return indent(nil, text) }
