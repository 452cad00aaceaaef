package sandbox

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"agency"
	"agency/internal/file"
)

// above reports whether path is dir or a folder above it.
func above(path, dir string) bool {
	return path == dir || strings.HasPrefix(dir, strings.TrimSuffix(path, "/")+"/")
}

// shows reports whether a folder would show what a sandbox hides: the user's home, the data root or
// the other runs.
func shows(c *agency.Confinement, home, folder string) bool {
	data := filepath.Dir(filepath.Dir(c.Run.Dir)) // runs/ID
	return above(folder, home) || above(folder, data) || above(data, folder) || above(folder, c.Run.Repo.Root)
}

// inSystem reports whether every sandbox has a path anyway, or something else in its place.
func inSystem(p string) bool {
	return slices.ContainsFunc([]string{"/usr", "/bin", "/sbin", "/lib", "/lib64", etc, "/proc", "/dev", "/run"}, func(dir string) bool { return above(dir, p) })
}

// programs returns the folders of PATH, and what belongs to the agent's own program: the package of
// npm that it is in, or the file.
func programs(c *agency.Confinement, home string) []mount {
	mounts := []mount{}
	add := func(p string) {
		if info, err := os.Stat(p); err == nil && !inSystem(p) && (!info.IsDir() || !shows(c, home, p)) {
			mounts = append(mounts, mount{"--ro-bind", p, p})
		}
	}
	for _, dir := range filepath.SplitList(c.Env.Lookup("PATH")) {
		if !filepath.IsAbs(dir) || above(c.Run.Worktree, dir) {
			continue
		}
		dir = filepath.Clean(dir)
		add(dir)
		// Programs in a folder of their own, such as that of a version of Node, use lib beside bin too.
		if prefix := filepath.Dir(dir); filepath.Base(dir) == "bin" && prefix != home && prefix != filepath.Join(home, ".local") {
			add(filepath.Join(prefix, "lib"))
		}
	}
	// Each link on the way to the program, and the program, unless a folder shows it already: bubblewrap cannot
	// mount over a link.
	way := func(p string) {
		if before, _, packaged := strings.Cut(p, "/node_modules/"); packaged {
			add(before + "/node_modules")
		}
		if !slices.ContainsFunc(mounts, func(m mount) bool { return above(m.path, p) }) {
			add(p)
		}
	}
	p := c.Argv[0]
	for range mostLinks {
		way(p)
		to, err := os.Readlink(p)
		if err != nil {
			break
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(filepath.Dir(p), to)
		}
		p = to
	}
	if file, err := filepath.EvalSymlinks(c.Argv[0]); err == nil { // folders on the way may be links too
		way(file)
	}
	return mounts
}

// mostLinks is how many links the kernel follows.
const mostLinks = 40

// configured returns the paths that the user's configuration adds. One that does not exist is left
// out.
func configured(c *agency.Confinement, home string) ([]mount, error) {
	mounts := []mount{}
	for _, list := range []struct {
		key, how string
		paths    []string
	}{{"read", "--ro-bind", c.Settings.Read}, {"write", "--bind", c.Settings.Write}} {
		for _, given := range list.paths {
			p := given
			if rest, ok := strings.CutPrefix(p, "~/"); ok {
				p = filepath.Join(home, rest)
			}
			p = filepath.Clean(p)
			real, err := filepath.EvalSymlinks(p)
			if err != nil {
				continue
			}
			if shows(c, home, p) || shows(c, home, real) || slices.ContainsFunc(secretFolders, func(s string) bool { return above(real, filepath.Join(home, s)) }) {
				return nil, agency.Errorf(agency.CodeConfigInvalid, "[sandbox] %s has %q, which holds what a sandbox hides: your keys, other repositories or agency's own data", list.key, given).
					WithHint("name the folders in it that agents need")
			}
			mounts = append(mounts, mount{list.how, real, p})
		}
	}
	return mounts, nil
}

// secretFolders are the places below the user's home that hold keys; what is above them is refused.
var secretFolders = []string{".ssh", ".aws", ".gnupg", ".config/gh", ".kube", ".docker", ".netrc", ".git-credentials", ".password-store"}

// state returns where the agent's program keeps its own state.
func state(c *agency.Confinement) []mount {
	mounts := []mount{}
	for _, p := range c.State.Read {
		if _, err := os.Stat(p); err == nil {
			mounts = append(mounts, mount{"--ro-bind", p, p})
		}
	}
	for _, p := range c.State.Write {
		if err := os.MkdirAll(p, 0o700); err == nil {
			mounts = append(mounts, mount{"--bind", p, p})
		}
	}
	for i, p := range c.State.Own {
		from := filepath.Join(c.Own, strconv.Itoa(i))
		if err := os.MkdirAll(from, 0o700); err == nil {
			mounts = append(mounts, mount{"--bind", from, p})
		}
	}
	for i, p := range c.State.Copy {
		data, err := os.ReadFile(p)
		if err != nil {
			continue
		}
		// A file in a folder of the run itself needs no mount; and a program can replace it, unlike a mount.
		if own := slices.Index(c.State.Own, filepath.Dir(p)); own >= 0 {
			_ = file.WriteAtomic(filepath.Join(c.Own, strconv.Itoa(own), filepath.Base(p)), data)
			continue
		}
		to := filepath.Join(c.Home, "copy"+string(rune('a'+i)))
		if os.MkdirAll(c.Home, 0o700) == nil && file.WriteAtomic(to, data) == nil {
			mounts = append(mounts, mount{"--bind", to, p})
		}
	}
	return mounts
}

// relayInside is the folder in a sandbox with the socket by which the agent asks the daemon.
const relayInside = "/run/agencyd"

// relay returns the folder by which the agent asks the daemon, if it has one.
func relay(c *agency.Confinement) []mount {
	if c.Relay == "" {
		return nil
	}
	return []mount{{"--ro-bind", c.Relay, relayInside}}
}

// usual are the patterns of the variables that every agent gets.
var usual = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "COLORTERM", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "COLUMNS", "LINES",
	"LANG", "LANGUAGE", "LC_*", "TZ", "EDITOR", "VISUAL", "PAGER", "LESS", "NO_COLOR", "FORCE_COLOR", "CLICOLOR*", "CI",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
	"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL",
	"AGENCY_RUN_ID", "AGENCY_ATTEMPT", "AGENCY_WORKTREE", "AGENCY_STATE_DIR", "AGENCY_HOME",
}

// environment returns the variables that an agent gets.
func environment(c *agency.Confinement) agency.Environ {
	allowed := slices.Concat(usual, c.State.Env, c.Settings.Env)
	env := c.Env.WithoutFunc(func(name string) bool {
		return !slices.Contains(c.Set, name) && !slices.ContainsFunc(allowed, func(pattern string) bool {
			ok, _ := path.Match(pattern, name) // the configuration refuses bad patterns
			return ok
		})
	})
	env = append(append(env, c.State.Set...), agency.SandboxVariable+"="+string(c.Sandbox.Level))
	if c.Relay != "" {
		env = append(env.Without("AGENCY_SOCKET"), "AGENCY_SOCKET="+filepath.Join(relayInside, agency.RelaySocket))
	}
	return env
}
