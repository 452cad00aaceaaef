package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"agency"
	"agency/internal/document"
	"agency/internal/plain"
)

// devcontainer are the keys of a devcontainer.json that agency reads, or must not overlook.
type devcontainer struct {
	Image string `json:"image"`
	Build struct {
		Dockerfile string            `json:"dockerfile"`
		Context    string            `json:"context"`
		Target     string            `json:"target"`
		Args       map[string]string `json:"args"`
		Options    []string          `json:"options"`
	} `json:"build"`
	DockerFile        string                     `json:"dockerFile"` // an older place of Build
	Context           string                     `json:"context"`
	DockerComposeFile any                        `json:"dockerComposeFile"`
	Features          map[string]json.RawMessage `json:"features"`
}

// ParseDevcontainer reads a repository's devcontainer.json, which messages call path. Comments are
// allowed. E_CONFIG_INVALID: it is damaged, or wants an image that agency cannot have.
func ParseDevcontainer(path string, data []byte) (*agency.Devcontainer, error) {
	refuse := func(format string, args ...any) error {
		return agency.Errorf(agency.CodeConfigInvalid, "%s: %s", path, plain.OneLine(fmt.Sprintf(format, args...))).
			WithHint("name an image in %s instead: [sandbox] image = \"...\"", agency.ProjectFile)
	}
	var d devcontainer
	if err := json.Unmarshal(withoutComments(data), &d); err != nil {
		offset := int64(0)
		if e, ok := errors.AsType[*json.SyntaxError](err); ok {
			offset = e.Offset
		} else if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			offset = e.Offset
		}
		before := string(data[:min(int(offset), len(data))])
		at := document.Position{Line: strings.Count(before, "\n") + 1, Column: len(before) - strings.LastIndex(before, "\n")}
		path = (&document.Problems{Name: path}).Place(at)
		return nil, refuse("%v", err)
	}
	if d.Build.Dockerfile == "" {
		d.Build.Dockerfile, d.Build.Context = d.DockerFile, d.Context
	}
	of := &agency.Devcontainer{Image: d.Image, Target: d.Build.Target, Args: d.Build.Args}
	if len(d.Features) > 0 {
		of.Ignored = append(of.Ignored, "features")
	}
	if len(d.Build.Options) > 0 {
		of.Ignored = append(of.Ignored, "build.options")
	}
	values := []string{d.Image, d.Build.Dockerfile, d.Build.Context, d.Build.Target}
	for _, value := range d.Build.Args {
		values = append(values, value)
	}
	switch at := slices.IndexFunc(values, func(v string) bool { return strings.Contains(v, "${") }); {
	case d.DockerComposeFile != nil:
		return nil, refuse("agency does not run the services of dockerComposeFile")
	case at >= 0:
		return nil, refuse("agency does not replace variables, as in %q", clip(values[at]))
	case d.Image == "" && d.Build.Dockerfile == "":
		return nil, refuse("it names neither image nor build.dockerfile")
	case d.Image != "":
		if err := checkImage(d.Image); err != nil {
			return nil, refuse("image %v", err)
		}
		return of, nil
	}
	for _, place := range []struct {
		key, value string
		into       *string
	}{{"build.dockerfile", d.Build.Dockerfile, &of.Dockerfile}, {"build.context", d.Build.Context, &of.Context}} {
		*place.into = filepath.Join(filepath.Dir(agency.DevcontainerFile), place.value)
		if filepath.IsAbs(place.value) || !filepath.IsLocal(*place.into) || strings.ContainsRune(place.value, 0) {
			return nil, refuse("%s must be in the repository, not %q", place.key, clip(place.value))
		}
	}
	return of, nil
}

// withoutComments returns JSON with blanks in the place of its comments, and of commas before an end.
func withoutComments(data []byte) []byte {
	out := slices.Clone(data)
	blank := func(from, to int) {
		for i := from; i < to; i++ {
			if out[i] != '\n' {
				out[i] = ' '
			}
		}
	}
	comma := -1 // a comma that nothing but blanks follows so far
	for i := 0; i < len(out); i++ {
		rest := string(out[i:min(i+2, len(out))])
		switch {
		case rest == "//" || rest == "/*":
			end := "\n"
			if rest == "/*" {
				end = "*/"
			}
			length := strings.Index(string(data[i+2:]), end)
			to := len(out)
			if length >= 0 {
				to = i + 2 + length + len(end)
			}
			blank(i, to)
			i = to - 1
		case out[i] == '"':
			comma = -1
			for i++; i < len(out) && out[i] != '"'; i++ {
				if out[i] == '\\' {
					i++
				}
			}
		case out[i] == ',':
			comma = i
		case (out[i] == '}' || out[i] == ']') && comma >= 0:
			blank(comma, comma+1)
			comma = -1
		case !strings.ContainsRune(" \t\r\n", rune(out[i])):
			comma = -1
		}
	}
	return out
}
