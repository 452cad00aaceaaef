package git

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agency"
	"agency/internal/file"
	"agency/internal/plain"
)

// reach are the settings of a repository that decide where its remotes are and how git reaches
// them. A run records them, so an agent that changes them later does not change where agency
// pushes.
var reach = map[string][]string{
	"core": {"sshcommand", "gitproxy", "askpass"}, "credential": nil, "http": nil, "remote": {"url", "pushurl"}, "ssh": {"variant"}, "url": nil,
}

// reaching returns those of the settings that decide where remotes are and how git reaches them.
func reaching(list []setting) []setting {
	return slices.DeleteFunc(slices.Clone(list), func(s setting) bool { return !s.in(reach) || s.key == "core.sshcommand" && relative(s.value) })
}

// Remote returns the URL to which git pushes for a remote of a repository, as the run recorded it.
// For a URL or an absolute path instead of a name, it returns just that. It returns a relative path
// of the configuration as an absolute one.
//
// E_BAD_REF: there is no such remote. E_TRUST_REQUIRED: an agent may have written the URL, because
// the repository now names another one than when the run began, or because the run recorded none.
// E_USAGE: the remote has several URLs.
func (g *Repos) Remote(ctx context.Context, repo agency.Repo, name string) (string, error) {
	list, err := g.settings(ctx, repo.CommonDir)
	if err != nil {
		return "", fmt.Errorf("read the git configuration of %s: %w", repo.Root, err)
	}
	now := pushed(list, name)
	recorded, err := g.recorded(ctx, repo)
	if err != nil {
		return "", err
	}
	then := pushed(recorded, name)
	switch {
	case len(now)+len(then) == 0 && strings.ContainsAny(name, ":/"):
		return name, nil
	case len(now)+len(then) == 0:
		return "", agency.Errorf(agency.CodeBadRef, "%s has no remote %q", repo.Root, name).
			WithHint("name another one or a URL with --remote; or set remote under [landing] in %s", agency.ProjectFile)
	case len(now) > 1 && slices.Equal(now, then):
		return "", agency.Errorf(agency.CodeUsage, "the remote %q of %s has %d URLs to push to", name, repo.Root, len(now)).WithHint("name one of them: --remote URL")
	case !slices.Equal(now, then):
		return "", changedRemote(repo, name, then, now)
	}
	if strings.HasPrefix(now[0], "./") || strings.HasPrefix(now[0], "../") { // the user's git resolves it from there
		return filepath.Join(repo.Root, now[0]), nil
	}
	return now[0], nil
}

// Remotes returns the names of a repository's remotes that have a URL, in the order of its
// configuration.
func (g *Repos) Remotes(ctx context.Context, repo agency.Repo) ([]string, error) {
	list, err := g.settings(ctx, repo.CommonDir)
	if err != nil {
		return nil, fmt.Errorf("read the git configuration of %s: %w", repo.Root, err)
	}
	names := []string{}
	for _, s := range list {
		if section, name, key := s.parts(); section == "remote" && key == "url" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names, nil
}

// changedRemote returns the error for a remote that is not what the run recorded.
func changedRemote(repo agency.Repo, name string, then, now []string) error {
	words := func(urls []string) string {
		if len(urls) == 0 {
			return "nowhere"
		}
		shown := make([]string, 0, len(urls))
		for _, u := range urls {
			shown = append(shown, plain.SafeURL(u))
		}
		return strings.Join(shown, " and ")
	}
	e := agency.Errorf(agency.CodeTrustRequired, "the remote %q of %s leads to %s, and led to %s when the run began; an agent can have changed it", name, repo.Root, words(now), words(then))
	if repo.GitRemotes == "" {
		e = agency.Errorf(agency.CodeTrustRequired, "the remote %q of %s leads to %s; the run began before agency recorded that, and an agent can have changed it", name, repo.Root, words(now))
	}
	if len(now) != 1 {
		return e.WithHint("say where to push: --remote URL")
	}
	return e.WithHint("if that is right: --remote %s", plain.ShellWord(plain.SafeURL(now[0])))
}

// pushed returns the URLs to which git pushes for a remote, by the settings.
func pushed(list []setting, name string) []string {
	var urls, push []string
	for _, s := range list {
		section, sub, key := s.parts()
		switch {
		case section != "remote" || sub != name:
		case key == "url":
			urls = append(urls, s.value)
		case key == "pushurl":
			push = append(push, s.value)
		}
	}
	if len(push) > 0 {
		return push
	}
	return urls
}

// recorded returns the settings of remotes that a run recorded.
func (g *Repos) recorded(ctx context.Context, repo agency.Repo) ([]setting, error) {
	if repo.GitRemotes == "" {
		return nil, nil
	}
	path := filepath.Join(g.records, repo.GitRemotes)
	data, err := file.ReadBeneath(g.records, repo.GitRemotes, 1<<20)
	if err != nil {
		return nil, fmt.Errorf("read where the remotes of %s were: %w", repo.Root, err)
	}
	if digest(string(data)) != repo.GitRemotes {
		return nil, agency.Errorf(agency.CodeTrustRequired, "%s, which records where the remotes of %s were, was changed since agency wrote it", path, repo.Root).
			WithHint("say where to push: --remote URL")
	}
	// Git reads a copy that no other process writes.
	dir, err := g.tempDir("remotes-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	copied := filepath.Join(dir, "config")
	if err := os.WriteFile(copied, data, 0o600); err != nil {
		return nil, err
	}
	c := within(repo, "config", "--file", copied, "--no-includes", "--list", "-z")
	out, err := g.do(ctx, c)
	return parseSettings(out), err
}
