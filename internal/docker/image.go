package docker

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
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

// Info is what an engine says of itself.
type Info struct {
	SecurityOptions []string
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
	var info Info
	err := c.call(ctx, http.MethodGet, "/info", nil, nil, &info)
	return info, err
}

// User returns the user of a container that has the rights of the caller, UID:GID. In a rootless
// engine that is root, which is the caller there.
func User(info *Info) string {
	if info.Has("rootless") {
		return "0:0"
	}
	return fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid())
}
