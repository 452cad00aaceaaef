package docker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"

	"agency"
	"agency/internal/plain"
)

// Image is what an engine knows of an image.
type Image struct {
	ID           string `json:"Id"`
	Architecture string
	OS           string `json:"Os"`
}

// Image returns an image by its name or id.
func (c *Client) Image(ctx context.Context, name string) (Image, error) {
	var image Image
	err := c.call(ctx, http.MethodGet, "/images/"+name+"/json", nil, nil, &image)
	return image, err
}

// Build builds an image from a tar archive, its context, and names it. The error ends with the last output of
// the engine.
func (c *Client) Build(ctx context.Context, b *agency.ImageBuild) error {
	args, err := json.Marshal(b.Args)
	if err != nil {
		return err
	}
	resp, err := c.send(ctx, http.MethodPost, "/build", url.Values{
		"t": {b.Name}, "dockerfile": {b.Dockerfile}, "target": {b.Target}, "buildargs": {string(args)}, "rm": {"true"}, "forcerm": {"true"},
	}, bytes.NewReader(b.Context), "application/x-tar")
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	said := ""
	for lines := json.NewDecoder(resp.Body); ; {
		var line struct{ Stream, Error string }
		switch err := lines.Decode(&line); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read the answer of the engine at %s: %w", c.Socket, err)
		case line.Error != "":
			return errors.New(plain.OneLine(strings.TrimSpace(line.Error + "; before that: " + said)))
		case strings.TrimSpace(line.Stream) != "" && !strings.HasPrefix(line.Stream, " --->") && !strings.HasPrefix(line.Stream, "Removing intermediate"):
			said = strings.TrimSpace(line.Stream)
		}
	}
}

// Info is what an engine says of itself.
type Info struct {
	SecurityOptions []string
	Podman          bool `json:"-"` // the engine is podman
}

// Has reports whether an engine has a security option, such as rootless.
func (i *Info) Has(option string) bool {
	for _, o := range i.SecurityOptions {
		if strings.Contains(","+o+",", ",name="+option+",") {
			return true
		}
	}
	return false
}

// Info returns what the engine says of itself.
func (c *Client) Info(ctx context.Context) (Info, error) {
	info := Info{Podman: c.podman}
	err := c.call(ctx, http.MethodGet, "/info", nil, nil, &info)
	return info, err
}

// User returns the user, as UID:GID, with which a container has the rights of the caller. In a rootless engine
// that is root, which the engine maps to the caller.
func User(info *Info) string {
	if info.Has("rootless") {
		return "0:0"
	}
	return fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid())
}
