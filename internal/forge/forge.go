package forge

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"agency"
	"agency/internal/plain"
)

// PR is a pull request as its forge shows it. Its texts are untrusted.
type PR struct {
	agency.PullRequest

	Body string
	node string // the id that GitHub gives it
}

// NewPR is a pull request to make.
type NewPR struct {
	Branch, Base string
	Title, Body  string
	Draft        bool
}

// Comment is what a reviewer wrote. Its texts are untrusted.
type Comment struct {
	Author string `json:"author"`
	Path   string `json:"path"` // empty for a comment on the whole pull request
	Line   int    `json:"line"` // of the new file; 0 for a comment on no line, or on one that is gone
	Body   string `json:"body"`
}

// Forge is a repository on a forge, reached by a program of the user with a login there.
//
// All methods return E_FORGE_AUTH when the user is not logged in, E_FORGE_NOT_FOUND without the
// program, E_WAIT_TIMEOUT when ctx ended first, and E_FORGE_FAILED for everything else that the
// forge refuses.
type Forge interface {
	// Find returns the pull requests of a branch of the repository itself, the newest first.
	Find(ctx context.Context, branch string) ([]PR, error)
	// Look fills in the facts that the forge shows for one pull request only.
	Look(ctx context.Context, pr *PR) error
	Create(ctx context.Context, pr NewPR) error
	Ready(ctx context.Context, pr *PR) error
	Close(ctx context.Context, pr *PR) error
	// Merge merges a pull request if its branch is still at the commit; otherwise the error is
	// E_SOURCE_MOVED.
	Merge(ctx context.Context, pr *PR, method agency.LandingMethod, commit string) error
	// Comments returns the comments that are not resolved, the oldest first. more reports whether
	// there are others that the forge did not list.
	Comments(ctx context.Context, pr *PR) (comments []Comment, more bool, err error)
}

// Site is where a repository is on a forge.
type Site struct {
	Kind agency.ForgeKind
	Host string
	Path string // owner and name, with slashes
}

// Site returns where the remote is on a forge. For the kind auto, the host decides.
// E_FORGE_NOT_FOUND: it is not on a forge that agency knows.
func (r *Remote) Site(ctx context.Context, kind agency.ForgeKind) (Site, error) {
	s := Site{Kind: kind}
	for _, at := range []string{r.url, r.URL} {
		host, path := locate(at)
		if host != "" && !strings.Contains(host, ".") {
			host = cmp.Or(r.alias(ctx, host), host)
		}
		if host != "" && strings.Contains(path, "/") {
			s.Host, s.Path = strings.TrimPrefix(host, "ssh."), path
			break
		}
	}
	if kind == agency.ForgeNone {
		return s, agency.Errorf(agency.CodeForgeNotFound, "[forge] kind is \"none\", so %s has no pull requests", r.Shown()).
			WithHint("agency push pushes without one; agency config set forge.kind auto")
	}
	if s.Host != "" && kind == agency.ForgeAuto {
		s.Kind = r.kindOf(s.Host)
	}
	if s.Host == "" || s.Kind == agency.ForgeAuto {
		return s, agency.Errorf(agency.CodeForgeNotFound, "%s is on no forge that agency knows by its address", r.Shown()).
			WithHint(`say which it is: kind = "github", "gitlab" or "gitea" under [forge] in agency.toml or your configuration; or only push: agency push RUN`)
	}
	return s, nil
}

// kindOf returns the kind of a forge by its host; auto when the host does not tell.
func (r *Remote) kindOf(host string) agency.ForgeKind {
	switch {
	case host == r.env.Lookup("GH_HOST"), strings.Contains(host, "github"), strings.HasSuffix(host, ".ghe.com"):
		return agency.ForgeGitHub
	case host == r.env.Lookup("GITLAB_HOST"), strings.Contains(host, "gitlab"):
		return agency.ForgeGitLab
	case host == "codeberg.org", strings.Contains(host, "gitea"), strings.Contains(host, "forgejo"):
		return agency.ForgeGitea
	default:
		return agency.ForgeAuto
	}
}

// locate returns the host and the path of a repository from its URL; empty for one on a disk.
func locate(remote string) (host, path string) {
	if u, err := url.Parse(remote); err == nil && u.Host != "" && u.Scheme != "file" {
		host, path = u.Hostname(), u.Path
	} else if before, after, ok := strings.Cut(remote, ":"); ok && !strings.Contains(before, "/") && !strings.Contains(remote, "://") {
		host, path = before[strings.LastIndex(before, "@")+1:], after // the form of ssh: user@host:path
	}
	return strings.ToLower(host), strings.TrimSuffix(strings.Trim(path, "/"), ".git")
}

// alias returns the real host behind a name in the user's configuration of ssh; empty for none.
func (r *Remote) alias(ctx context.Context, name string) string {
	a, err := process{name: "ssh", args: []string{"-G", "--", name}, env: r.env, dir: r.dir}.run(ctx)
	if err != nil || a.exit != 0 {
		return ""
	}
	for line := range strings.Lines(a.out) {
		if host, ok := strings.CutPrefix(line, "hostname "); ok {
			return strings.TrimSpace(host)
		}
	}
	return ""
}

// Forge returns the forge of a site, which it reaches by a program of the user, such as gh. For Gitea
// no program is known, and Forge fails with E_FORGE_NOT_FOUND.
func (r *Remote) Forge(s Site) (Forge, error) {
	switch s.Kind {
	case agency.ForgeGitHub:
		owner, name, _ := strings.Cut(s.Path, "/")
		return &gitHub{client{program: "gh", host: s.Host, env: r.env, dir: r.dir}, owner, name}, nil
	case agency.ForgeGitLab:
		return &gitLab{client{program: "glab", host: s.Host, env: r.env, dir: r.dir, headers: []string{"--header", "Content-Type: application/json"}}, "projects/" + url.PathEscape(s.Path)}, nil
	default:
		return nil, agency.Errorf(agency.CodeForgeNotFound, "agency makes pull requests on %s by git push, and cannot look at them", s.Host).WithHint("look there: %s", plain.SafeURL("https://"+s.Host+"/"+s.Path))
	}
}

// client asks a forge by "PROGRAM api", which adds the user's credentials.
type client struct {
	program, host string
	headers       []string
	env           agency.Environ
	dir           string // a folder outside of the user's repositories
}

// ask makes one request. It sends body as JSON and decodes the answer into to, if these are not
// nil.
func (c *client) ask(ctx context.Context, method, path string, body, to any) error {
	p := process{name: c.program, args: []string{"api", "--hostname", c.host, "--method", method}, env: append(slices.Clone(c.env.Without("GIT_DIR")), "GH_PROMPT_DISABLED=1", "NO_PROMPT=1"), dir: c.dir}
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return err
		}
		p.args, p.input = append(append(p.args, c.headers...), "--input", "-"), string(data)
	}
	p.args = append(p.args, path)
	a, err := p.run(ctx)
	switch {
	case err == errMissing: //nolint:errorlint // it is returned as it is
		return agency.Errorf(agency.CodeForgeNotFound, "%s is not on your PATH; agency reaches %s by it", c.program, c.host).
			WithHint("install it and log in: %s auth login --hostname %s; or only push: agency push RUN", c.program, plain.ShellWord(c.host))
	case late(err):
		return agency.Errorf(agency.CodeWaitTimeout, "%s did not answer in time: %w", c.host, err).WithHint("try again, with a longer --timeout")
	case err != nil:
		return err
	case a.exit != 0:
		return c.refused(a)
	case to == nil:
		return nil
	}
	if err := json.Unmarshal([]byte(a.out), to); err != nil {
		return agency.Errorf(agency.CodeForgeFailed, "the answer of %s for %s is not JSON: %w", c.program, c.host, err).WithHint("try it: %s api --hostname %s user", c.program, plain.ShellWord(c.host))
	}
	return nil
}

func (c *client) refused(a answer) error {
	words := said(a.err)
	for _, sign := range []string{"HTTP 401", "auth login", "Bad credentials", "401 Unauthorized", "401 {"} {
		if a.exit == 4 || strings.Contains(a.err, sign) {
			return agency.Errorf(agency.CodeForgeAuth, "%s is not logged in at %s: %s", c.program, c.host, words).
				WithHint("%s auth login --hostname %s", c.program, plain.ShellWord(c.host))
		}
	}
	if details := details(a.out); details != "" {
		words += ": " + details
	}
	return agency.Errorf(agency.CodeForgeFailed, "%s refuses: %s", c.host, words).WithHint("what %s may do there: %s auth status", c.program, c.program)
}

// details returns the details of GitHub's "Validation Failed", which gh itself does not show; empty
// for none.
func details(body string) string {
	var refusal struct{ Errors []struct{ Message string } }
	if json.Unmarshal([]byte(body), &refusal) != nil {
		return ""
	}
	lines := make([]string, 0, len(refusal.Errors))
	for _, e := range refusal.Errors {
		lines = append(lines, e.Message)
	}
	return said(strings.Join(lines, "\n"))
}

// Choose returns the pull request of a run among those of its branch; nil when there is none. It
// takes an open one if there is one: that with the number, else one with the marker, else any. Of the
// others, it takes that with the number, else the newest one with the marker.
func Choose(prs []PR, marker string, number int) *PR {
	better := func(fits func(*PR) bool) *PR {
		for i := range prs {
			if fits(&prs[i]) {
				return &prs[i]
			}
		}
		return nil
	}
	marked := func(pr *PR) bool { return strings.Contains(pr.Body, marker) }
	for _, fits := range []func(*PR) bool{
		func(pr *PR) bool { return pr.State.Open() && pr.Number == number },
		func(pr *PR) bool { return pr.State.Open() && marked(pr) },
		func(pr *PR) bool { return pr.State.Open() },
		func(pr *PR) bool { return pr.Number == number },
		marked,
	} {
		if pr := better(fits); pr != nil {
			return pr
		}
	}
	return nil
}
