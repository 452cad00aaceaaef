// Package docker speaks the part of the Docker Engine's API that sandboxes need, over the unix
// socket of the engine or of podman.
package docker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"agency"
	"agency/internal/plain"
)

// The versions of the API that this package speaks. The oldest one has all that it needs, and nothing of that
// has changed up to the newest one.
const (
	oldest = 41 // 1.41, Docker 20.10 and podman 4
	newest = 52 // 1.52, Docker 29
)

// Client is a connection to one engine. It can be used by several goroutines.
type Client struct {
	Socket  string // the path of the engine's socket
	version string // the prefix of paths for the version of the API; empty before Open
	podman  bool   // the engine is podman
	http    *http.Client
}

// SocketOf returns the socket of the engine that an environment names by DOCKER_HOST, or else the
// usual one that exists. E_SANDBOX_UNAVAILABLE: there is none, or it is on another machine.
func SocketOf(env agency.Environ) (string, error) {
	if host := env.Lookup("DOCKER_HOST"); host != "" {
		path, local := strings.CutPrefix(host, "unix://")
		if !local || !filepath.IsAbs(path) {
			return "", unavailable("DOCKER_HOST is %q, and a worktree can be shared only with an engine on this machine", plain.OneLine(host)).
				WithHint("DOCKER_HOST=unix:///var/run/docker.sock")
		}
		return filepath.Clean(path), nil
	}
	places := []string{"/var/run/docker.sock"}
	if dir := env.Lookup("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		places = append(places, filepath.Join(dir, "docker.sock"), filepath.Join(dir, "podman", "podman.sock"))
	}
	places = append(places, "/run/podman/podman.sock")
	for _, path := range places {
		if info, err := os.Stat(path); err == nil && info.Mode()&fs.ModeSocket != 0 {
			return path, nil
		}
	}
	return "", unavailable("neither Docker nor podman is running here: there is no socket %s", strings.Join(places, ", ")).
		WithHint("install and start Docker (https://docs.docker.com/engine/install), or podman: systemctl --user start podman.socket; or set DOCKER_HOST=unix:///PATH")
}

// New returns a client of the engine at a socket. It does nothing yet.
func New(socket string) *Client {
	return &Client{Socket: socket, http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "unix", socket)
		},
		DisableKeepAlives: true,
	}}}
}

// Open asks the engine for its version. E_SANDBOX_UNAVAILABLE: it does not answer, refuses this
// user, or is too old or too new.
func (c *Client) Open(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var v struct {
		APIVersion    string `json:"ApiVersion"`
		MinAPIVersion string
		Version       string
		Components    []struct{ Name string }
	}
	if err := c.call(ctx, http.MethodGet, "/version", nil, nil, &v); err != nil {
		return err
	}
	most, least := minor(v.APIVersion), minor(v.MinAPIVersion)
	switch {
	case most < oldest:
		return unavailable("the engine at %s has the version %s, which speaks the API %s", c.Socket, plain.OneLine(v.Version), plain.OneLine(v.APIVersion)).
			WithHint("agency needs Docker 20.10 or newer, or podman 4 or newer")
	case least > newest:
		return unavailable("the engine at %s speaks the API %s and newer, which agency does not know", c.Socket, plain.OneLine(v.MinAPIVersion)).
			WithHint("a newer agency may; or start the engine with DOCKER_MIN_API_VERSION=1.%d", newest)
	}
	c.version = fmt.Sprintf("/v1.%d", max(oldest, least))
	for _, part := range v.Components {
		c.podman = c.podman || strings.HasPrefix(part.Name, "Podman")
	}
	return nil
}

// minor returns the second part of a version 1.N; 0 for anything else.
func minor(version string) int {
	rest, ok := strings.CutPrefix(version, "1.")
	n, err := strconv.Atoi(rest)
	if !ok || err != nil {
		return 0
	}
	return n
}

// Missing reports whether an error means that the engine does not have what a call names.
func Missing(err error) bool { return status(err) == http.StatusNotFound }

// Refusal is the answer of an engine that refuses a request.
type Refusal struct {
	Status int
	Words  string
}

func (r *Refusal) Error() string { return r.Words }

func status(err error) int {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r.Status
	}
	return 0
}

// call sends a request, with body as JSON unless it is nil, and reads the answer into the value into, unless
// that is nil.
func (c *Client) call(ctx context.Context, method, path string, query url.Values, body, into any) error {
	var data io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return err
		}
		data = bytes.NewReader(encoded)
	}
	resp, err := c.send(ctx, method, path, query, data, "application/json")
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if into == nil {
		_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, mostAnswer))
		return err
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, mostAnswer)).Decode(into); err != nil {
		return fmt.Errorf("read the answer of the engine at %s: %w", c.Socket, err)
	}
	return nil
}

// mostAnswer is how many bytes of an answer the client reads.
const mostAnswer = 16 << 20

// send sends a request, whose body has this content type, and returns the answer. A refusal of the engine is
// an error.
func (c *Client) send(ctx context.Context, method, path string, query url.Values, body io.Reader, contentType string) (*http.Response, error) {
	address := url.URL{Scheme: "http", Host: "docker", Path: c.version + path, RawQuery: query.Encode()}
	req, err := http.NewRequestWithContext(ctx, method, address.String(), body)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.explain(err)
	}
	if resp.StatusCode < http.StatusBadRequest {
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()
	var answer struct{ Message string }
	data, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if json.Unmarshal(data, &answer) != nil || answer.Message == "" {
		answer.Message = resp.Status + " " + string(data)
	}
	return nil, &Refusal{resp.StatusCode, plain.OneLine(strings.TrimSpace(answer.Message))}
}

// explain returns the error for one of the connection, with a hint.
func (c *Client) explain(err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return unavailable("this user may not use the engine at %s", c.Socket).
			WithHint("sudo usermod -aG docker $USER and log in again (its members can become root), or use rootless Docker or podman, which need no rights")
	case errors.Is(err, fs.ErrNotExist), isRefused(err):
		return unavailable("the engine at %s is not running", c.Socket).WithHint("sudo systemctl start docker; or set DOCKER_HOST=unix:///PATH")
	default:
		return unavailable("the engine at %s does not answer: %w", c.Socket, err).WithHint("see whether it runs: docker version")
	}
}

func isRefused(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

func unavailable(format string, args ...any) *agency.Error {
	return agency.Errorf(agency.CodeSandboxUnavailable, "the sandbox level container: "+format, args...)
}
