package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"agency"
	"agency/internal/document"
	"agency/internal/host"
	"agency/internal/plain"
)

// levelKey binds a level of sandboxes.
func levelKey(name string, p *agency.SandboxLevel) key {
	return keyOf(name, p, func(v *document.Value) (agency.SandboxLevel, error) {
		text, err := v.AsString()
		if err == nil {
			err = oneOf(texts(agency.SandboxLevels())...)(text)
		}
		return agency.SandboxLevel(text), err
	}, func(l agency.SandboxLevel) string { return quote(string(l)) })
}

// modeKey binds how agency speaks with an agent.
func modeKey(p *agency.Mode) key {
	return keyOf("mode", p, func(v *document.Value) (agency.Mode, error) {
		text, err := v.AsString()
		if err == nil && text != "" && !slices.Contains(agency.Modes(), agency.Mode(text)) {
			err = fmt.Errorf("must be one of %s, not %q", agency.ModeWords(), clip(text))
		}
		return agency.Mode(text), err
	}, func(m agency.Mode) string { return quote(string(m)) })
}

// resourcesKeys binds the limits of a table.
func resourcesKeys(r *agency.Resources) []key {
	keys := []key{}
	for _, name := range agency.LimitNames() {
		keys = append(keys, key{
			name: string(name),
			set: func(v *document.Value) error {
				switch v.Kind {
				case document.Text, document.Integer, document.Float:
					return r.Put(name, v.Text)
				default:
					return fmt.Errorf("must be a limit, not %s", v.Words())
				}
			},
			show: func() string {
				text := r.Text(name)
				if _, err := strconv.ParseFloat(text, 64); err == nil {
					return text
				}
				return quote(text)
			},
		})
	}
	return keys
}

// networkKey binds a network of sandboxes.
func networkKey(name string, p *agency.Network) key {
	return keyOf(name, p, func(v *document.Value) (agency.Network, error) {
		text, err := v.AsString()
		if err == nil && !slices.Contains(agency.Networks(), agency.Network(text)) {
			err = fmt.Errorf("must be %q, %q or %q, not %q", agency.NetworkFull, agency.NetworkAllow, agency.NetworkNone, clip(text))
		}
		return agency.Network(text), err
	}, func(n agency.Network) string { return quote(string(n)) })
}

// checkSandboxPath checks a path that is added to sandboxes: absolute, or below the user's home.
func checkSandboxPath(s string) error {
	rest, home := strings.CutPrefix(s, "~/")
	switch {
	case plain.LineProblem(s) != "":
		return fmt.Errorf("must be a path, not %q", clip(s))
	case home && rest != "" && filepath.IsLocal(rest):
		return nil
	case s == "~" || s == "~/" || filepath.Clean(s) == "/":
		return document.Hinted(fmt.Errorf("must not be %q: your secrets are in there", s), `name what the agent needs, such as "~/.cargo"`)
	case home || !filepath.IsAbs(s):
		return errors.New("must be an absolute path, or one that begins with ~/")
	}
	return nil
}

// checkImage checks the name of an image; empty leaves the choice open.
func checkImage(s string) error {
	if s != "" && !agency.ImageName(s) {
		return fmt.Errorf("must be the name of an image, not %q", clip(s))
	}
	return nil
}

// checkHost checks a host that agents may reach.
func checkHost(s string) error {
	_, err := host.Parse(s)
	return err
}

// checkProjectHost checks a host of a repository, which may not name what is on the user's machine
// or in the user's network.
func checkProjectHost(s string) error {
	hosts, err := host.Parse(s)
	if err == nil && slices.ContainsFunc(hosts, func(h host.Host) bool { return h.Port != 0 }) {
		err = document.Hinted(fmt.Errorf("must be a name without a port, not %q", clip(s)), "only the user's own configuration can name ports: [sandbox] hosts")
	}
	return err
}

// portsKey binds a list of ports.
func portsKey(p *[]int) key {
	return keyOf("ports", p, func(v *document.Value) ([]int, error) {
		if v.Kind != document.List {
			return nil, fmt.Errorf("must be a list of ports, such as [3000], not %s", v.Words())
		}
		ports := []int{}
		for i, item := range v.Items {
			switch n, err := item.AsInt(); {
			case err != nil:
				return nil, fmt.Errorf("is wrong at item %d: it %w", i+1, err)
			case n < 1 || n > 65535:
				return nil, fmt.Errorf("is wrong at item %d: it must be between 1 and 65535, not %d", i+1, n)
			case slices.Contains(ports, int(n)):
				return nil, fmt.Errorf("has %d twice", n)
			default:
				ports = append(ports, int(n))
			}
		}
		if len(ports) > agency.MostPorts {
			return nil, fmt.Errorf("must have at most %d ports, not %d", agency.MostPorts, len(ports))
		}
		return ports, nil
	}, func(ports []int) string { return strings.ReplaceAll(fmt.Sprint(ports), " ", ", ") })
}
