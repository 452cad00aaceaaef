package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/pelletier/go-toml/v2/unstable"

	"agency"
)

// ParseProject reads a repository's agency.toml, which path names in messages. Everything that is wrong is reported at once,
// as E_CONFIG_INVALID. Whether a runner or a base exists is not known here. Without a file data is nil: the defaults.
func ParseProject(path string, data []byte) (agency.Project, error) {
	p := agency.DefaultProject()
	entries, faults := parse(data)
	f := projectFormat(&p)
	var found problems
	found.add(f.read(entries, filepath.Base(path))...)
	for _, fault := range faults {
		if !found.on(fault.at.line) {
			found.add(fault)
		}
	}
	if len(found) > 0 {
		return agency.DefaultProject(), found.err(path)
	}
	return p, nil
}

// projectFormat is the file format of agency.toml bound to p. Where a key is one of the user's configuration too, it has the
// same name and meaning.
func projectFormat(p *agency.Project) *format {
	f := emptyFormat()
	f.table("", "project",
		textKey("type", &p.Type, checkType),
		textKey("sandbox", &p.Sandbox, checkSandbox),
		textKey("layout", &p.Layout, checkLayout),
		boolKey("parallel", &p.Parallel),
		boolKey("agent_runs", &p.Window),
	)
	f.table("", "defaults",
		textKey("runner", &p.Runner, checkRunner),
		textKey("base", &p.Base, checkRef),
	)
	f.table("", "ids", textKey("format", &p.HandleFormat, checkFormat))
	f.table("", "scripts",
		setupKey("setup", &p.Setup),
		durationKey("timeout", &p.SetupTimeout, time.Second, 24*time.Hour),
	)
	f.table("", "worktree", listKey("copy", &p.Copy, checkLocal), listKey("link", &p.Link, checkLocal))
	return f
}

// setupKey binds a file of the repository, or a program and its arguments.
func setupKey(name string, p *[]string) key {
	return key{
		name: name,
		set: func(v value) error {
			switch v.kind {
			case unstable.String:
				if err := checkLocal(v.text); err != nil {
					return hinted{err, `a program and its arguments are a list: setup = ["make", "deps"]`}
				}
				*p = []string{"./" + strings.TrimPrefix(v.text, "./")}
				return nil
			case unstable.Array:
				return setArgv(p, v.items)
			default:
				return mustBe("a file of the repository, or a list of a program and its arguments", v)
			}
		},
		show: func() string { return quote(strings.Join(*p, " ")) },
	}
}

func setArgv(p *[]string, items []value) error {
	argv := make([]string, 0, len(items))
	for i, item := range items {
		if item.kind != unstable.String {
			return fmt.Errorf("must be a list of texts, but item %d is %s", i+1, item.words())
		}
		if err := checkText(item.text); err != nil {
			return fmt.Errorf("is wrong at item %d: it %w", i+1, err)
		}
		argv = append(argv, item.text)
	}
	switch {
	case len(argv) == 0 || argv[0] == "":
		return errors.New("must name a program")
	case strings.Contains(argv[0], "/"):
		if err := checkLocal(argv[0]); err != nil {
			return fmt.Errorf("is wrong at item 1: it %w", err)
		}
	case strings.ContainsAny(argv[0], " \t\n"):
		return fmt.Errorf("must begin with one program, not %q: arguments are items of their own", clip(argv[0]))
	}
	*p = argv
	return nil
}

func checkType(s string) error {
	if err := agency.CheckWord("type", s); err != nil {
		return hinted{fmt.Errorf("must be one word, not %q", clip(s)), agency.AsError(err).Hint}
	}
	return nil
}

func checkSandbox(s string) error {
	switch s {
	case "worktree":
		return nil
	case "process", "container":
		return hinted{fmt.Errorf("is %q, which is not there yet", s), `the one level that works now is "worktree"`}
	default:
		return fmt.Errorf(`must be "worktree", not %q`, clip(s))
	}
}

func checkLayout(s string) error {
	if s != agency.LayoutMinimal && s != agency.LayoutStandard {
		return fmt.Errorf("must be %q or %q, not %q", agency.LayoutMinimal, agency.LayoutStandard, clip(s))
	}
	return nil
}

func checkRunner(s string) error {
	if err := agency.CheckWord("runner", s); err != nil {
		return fmt.Errorf("must be the name of a runner, not %q", clip(s))
	}
	return nil
}

func checkFormat(s string) error {
	if _, err := agency.ParseHandleFormat(s); err != nil {
		return fmt.Errorf("is not a format: %w", err)
	}
	return nil
}

// checkLocal refuses a path that is not plainly one beneath the repository's root, and those that are git's or agency's own.
func checkLocal(s string) error {
	clean := filepath.Clean(s)
	first, _, _ := strings.Cut(clean, "/")
	switch {
	case s == "" || !filepath.IsLocal(s) || clean == ".":
		return fmt.Errorf("must be a path in the repository, not %q", clip(s))
	case strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || r == unicode.ReplacementChar }):
		return errors.New("must not hold control characters")
	case strings.HasPrefix(s, "-"):
		return fmt.Errorf("must not begin with a dash, as %q does", clip(s))
	case strings.EqualFold(first, ".git") || first == agency.DotDir:
		return fmt.Errorf("must not lie in %s", first)
	}
	return nil
}
