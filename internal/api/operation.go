// Package api is the contract between the daemon and its clients: the table of operations, their
// requests and responses, the envelope and the strict codec, and the client itself.
package api

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"
	"slices"

	"agency"
	"agency/internal/plain"
)

// Operation is one thing that the daemon does: POST Path with a JSON request, answered by an
// envelope with a response. The table in operations.go holds all of them. The daemon's handlers,
// the typed client, the tools of agents, docs/json.md and docs/openapi.json are made from it.
type Operation[Req, Resp any] struct {
	Name    string // also the path: /v1/NAME
	Kind    Kind
	Help    string        // one sentence: what it does
	Errors  []agency.Code // the errors that it can return, besides CommonErrors
	Example string        // a request, as JSON
	Tool    *Tool         // nil unless agents have it as a tool
}

// Kind decides what a client may do when the answer to an operation does not come.
type Kind int

// The kinds of operation.
const (
	Acts  Kind = iota // changes something: never sent twice, because the first request may have been carried out
	Reads             // does no harm when sent twice, and answers soon: sent again, with a time limit
	Waits             // changes nothing and may take long, because it waits or has git look at files: sent again
)

// String returns acts, reads or waits.
func (k Kind) String() string { return [...]string{"acts", "reads", "waits"}[k] }

// Tool is an operation as agency mcp offers it to agents.
type Tool struct {
	Name     string
	Help     string   // for the model that chooses among the tools
	Destroys bool     // it can end the work of an agent, or remove it
	Extra    bool     // only agency mcp --tools all offers it
	Required []string // keys of the request that a model must give
	Optional []string // keys of the request that a model may give; a tool with arguments of its own has neither list
}

func operationPath(name string) string { return "/v1/" + name }

// Describe returns the operation without its types.
func (o Operation[Req, Resp]) Describe() Description {
	return Description{
		Name: o.Name, Kind: o.Kind, Help: o.Help, Errors: o.Errors, Example: o.Example, Tool: o.Tool,
		Request: reflect.TypeFor[Req](), Response: reflect.TypeFor[Resp](),
	}
}

// Description is an operation whose types are known only at run time: for documents, and for
// clients that name it.
type Description struct {
	Name, Help        string
	Kind              Kind
	Errors            []agency.Code
	Example           string
	Tool              *Tool
	Request, Response reflect.Type
}

// Path returns the path that serves the operation.
func (d *Description) Path() string { return operationPath(d.Name) }

// Gives reports whether the operation can return a code: one of its own, or one common to all
// operations.
func (d *Description) Gives(code agency.Code) bool {
	return slices.Contains(d.Errors, code) || slices.Contains(CommonErrors(), code)
}

// CommonErrors returns the codes that every operation can return: the request is invalid, the
// caller lacks permission, the machine or the configuration is unsuitable, or the daemon is not
// there.
func CommonErrors() []agency.Code {
	return []agency.Code{
		agency.CodeUsage, agency.CodePermissionDenied, agency.CodeConfigInvalid,
		agency.CodeGitNotFound, agency.CodeGitFailed, agency.CodeDiskLow, agency.CodeTmuxNotFound, agency.CodeTmuxFailed,
		agency.CodeDBLocked, agency.CodeDBError, agency.CodeDBMissing, agency.CodeResources, agency.CodeInternal,
		agency.CodeDaemonStartFailed, agency.CodeDaemonConnectFailed, agency.CodeDaemonLost, agency.CodeDaemonVersion, agency.CodeSocketPathInvalid,
	}
}

// Find returns the operation with a name. An unknown name is E_USAGE, and the error names the
// nearest one.
func Find(name string) (*Description, error) {
	names := []string{}
	for _, op := range Operations() {
		if op.Name == name {
			return &op, nil
		}
		names = append(names, op.Name)
	}
	err := agency.Errorf(agency.CodeUsage, "there is no operation %q", name)
	if near := plain.Nearest(name, names); near != "" {
		return nil, err.WithHint("did you mean: agency api %s", near)
	}
	return nil, err.WithHint("docs/json.md lists the operations, and agency api prints them")
}

// NewRequest decodes a request as strictly as the daemon does, so that a mistake is found before
// the request is sent. It returns a pointer to the operation's request type. The error is E_USAGE
// with the position of the mistake.
func (d *Description) NewRequest(body []byte) (any, error) {
	req := reflect.New(d.Request)
	if len(bytes.TrimSpace(body)) == 0 {
		return nil, agency.Errorf(agency.CodeUsage, "the request of %s is empty", d.Name).WithHint("an empty request is {}; or leave out the -")
	}
	if err := Decode(body, req.Interface()); err != nil {
		return nil, agency.Errorf(agency.CodeUsage, "the request of %s is not valid: %w", d.Name, err)
	}
	return req.Interface(), nil
}

// Send runs an operation with a request from NewRequest and returns its response. Its errors are
// those of Call.
func (d *Description) Send(ctx context.Context, c *Client, req any) (json.RawMessage, error) {
	var resp json.RawMessage
	err := c.call(ctx, d.Name, d.Kind, reflect.ValueOf(req).Elem().Interface(), &resp)
	return resp, err
}

// Empty is a request without content.
type Empty struct{}
