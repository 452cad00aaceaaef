package docker

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
)

// Container is the description by which the engine makes a container, with the names of the API.
type Container struct {
	Image      string
	User       string
	Hostname   string
	WorkingDir string
	Env        []string
	Entrypoint []string
	Cmd        []string
	Labels     map[string]string
	HostConfig HostConfig
}

// HostConfig is how a container is isolated from the machine, and its limits.
type HostConfig struct {
	NetworkMode    string
	CapDrop        []string
	SecurityOpt    []string
	ReadonlyRootfs bool
	CgroupnsMode   string `json:",omitempty"`
	IpcMode        string
	Mounts         []Mount
	Tmpfs          map[string]string // options by path
	Memory         int64             `json:",omitempty"` // bytes
	MemorySwap     int64             `json:",omitempty"` // bytes, with Memory
	NanoCPUs       int64             `json:"NanoCpus,omitempty"`
	PidsLimit      int64             `json:",omitempty"`
	Ulimits        []Ulimit          `json:",omitempty"`
	LogConfig      LogConfig
}

// Mount is a file or folder of the machine in a container.
type Mount struct {
	Type, Source, Target string
	ReadOnly             bool
	BindOptions          *BindOptions `json:",omitempty"`
}

// BindOptions are the options of a mount of the type bind.
type BindOptions struct{ Propagation string }

// Ulimit is a limit of each process of a container.
type Ulimit struct {
	Name       string
	Soft, Hard int64
}

// LogConfig is where the engine keeps the output of a container.
type LogConfig struct{ Type string }

// State is what an engine knows of a container.
type State struct {
	Status    string // created, running, paused, exited, dead ...
	Running   bool
	OOMKilled bool
	ExitCode  int
	Error     string
}

// Listed is a container in a list.
type Listed struct {
	Names  []string // with a slash before each
	Labels map[string]string
}

// Name returns the name of a container.
func (l *Listed) Name() string {
	if len(l.Names) == 0 {
		return ""
	}
	return strings.TrimPrefix(l.Names[0], "/")
}

// Labelled returns the containers, running or not, that have a label.
func (c *Client) Labelled(ctx context.Context, label string) ([]Listed, error) {
	filters, err := json.Marshal(map[string][]string{"label": {label}})
	if err != nil {
		return nil, err
	}
	var list []Listed
	err = c.call(ctx, http.MethodGet, "/containers/json", url.Values{"all": {"true"}, "filters": {string(filters)}}, nil, &list)
	return list, err
}

// Create makes a container of this name. It does not start it.
func (c *Client) Create(ctx context.Context, name string, of *Container) error {
	return c.call(ctx, http.MethodPost, "/containers/create", url.Values{"name": {name}}, of, nil)
}

// Start starts a container.
func (c *Client) Start(ctx context.Context, name string) error {
	return c.call(ctx, http.MethodPost, "/containers/"+name+"/start", nil, nil, nil)
}

// Inspect returns the state of a container.
func (c *Client) Inspect(ctx context.Context, name string) (State, error) {
	var answer struct{ State State }
	err := c.call(ctx, http.MethodGet, "/containers/"+name+"/json", nil, nil, &answer)
	return answer.State, err
}

// Remove ends a container and removes it. It returns nil when the engine has no such container, and
// waits when another call is removing it.
func (c *Client) Remove(ctx context.Context, name string) error {
	err := c.call(ctx, http.MethodDelete, "/containers/"+name, url.Values{"force": {"true"}, "v": {"true"}}, nil, nil)
	if status(err) == http.StatusConflict && strings.Contains(err.Error(), "already in progress") {
		err = c.call(ctx, http.MethodPost, "/containers/"+name+"/wait", url.Values{"condition": {"removed"}}, nil, nil)
	}
	if Missing(err) {
		return nil
	}
	return err
}
