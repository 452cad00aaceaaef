package config

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"agency"
	"agency/internal/document"
	"agency/internal/handle"
	"agency/internal/plain"
)

// ParseProject reads a repository's agency.toml, which messages call path. All problems are
// reported at once, as E_CONFIG_INVALID. It does not check whether a runner or a base exists.
// Without a file data is nil: the defaults.
func ParseProject(path string, data []byte) (agency.Project, error) {
	p := agency.DefaultProject()
	root, faults := document.TOML(data)
	f := projectFormat(path, &p)
	f.read("", root)
	f.found.AddFaults(faults)
	if err := f.found.Err(agency.CodeConfigInvalid); err != nil {
		return agency.DefaultProject(), err
	}
	return p, nil
}

// projectFormat returns the file format of the agency.toml at path, bound to p. A key that the
// user's configuration has too has the same name and meaning.
func projectFormat(path string, p *agency.Project) *format {
	f := emptyFormat(path)
	f.table("", "project",
		textKey("type", &p.Type, checkType),
		levelKey("sandbox", &p.Sandbox.Level),
		networkKey("network", &p.Sandbox.Network),
		listKey("hosts", &p.Hosts, checkProjectHost),
		textKey("layout", &p.Layout, checkLayout),
		boolKey("parallel", &p.Parallel),
		boolKey("agent_runs", &p.Window),
	)
	f.table("", "resources", resourcesKeys(&p.Resources)...)
	f.table("", "sandbox", textKey("image", &p.Image, checkImage), portsKey(&p.Ports))
	f.table("", "defaults",
		textKey("runner", &p.Runner, checkRunner),
		textKey("base", &p.Base, checkRef),
	)
	f.table("", "ids", textKey("format", &p.HandleFormat, checkFormat))
	f.table("", "scripts",
		commandKey("setup", &p.Setup),
		durationKey("timeout", &p.SetupTimeout, time.Second, 24*time.Hour),
		listKey("setup_inputs", &p.SetupInputs, checkLocal),
	)
	f.table("", "landing", landingKeys(&p.Landing)...)
	f.table("", "forge", forgeKey(&p.Landing.Forge))
	f.table("", "worktree", listKey("copy", &p.Copy, checkLocal), listKey("link", &p.Link, checkLocal))
	f.tables[""] = append(f.tables[""], "check")
	f.keys["check"] = checksKey(f, &p.Checks)
	return f
}

// landingKeys binds the choices of landings, which the user's configuration has too.
func landingKeys(l *agency.LandingSettings) []key {
	methods := []string{}
	for _, m := range agency.LandingMethods() {
		methods = append(methods, string(m))
	}
	return []key{
		textKey("target", &l.Target, checkTarget),
		keyOf("method", &l.Method, func(v *document.Value) (agency.LandingMethod, error) {
			text, err := v.AsString()
			if err == nil {
				err = oneOf(methods...)(text)
			}
			return agency.LandingMethod(text), err
		}, func(m agency.LandingMethod) string { return quote(string(m)) }),
		textKey("uncommitted", &l.Uncommitted, oneOf(agency.RefuseUncommitted, agency.IncludeUncommitted)),
		textKey("checkout", &l.Checkout, oneOf(agency.CheckoutDisjoint, agency.CheckoutClean, agency.CheckoutNever)),
		textKey("after", &l.After, oneOf(agency.AfterKeep, agency.AfterGC)),
		textKey("remote", &l.Remote, checkRemote),
	}
}

// forgeKey binds the kind of the forge.
func forgeKey(kind *agency.ForgeKind) key {
	kinds := []string{}
	for _, k := range agency.ForgeKinds() {
		kinds = append(kinds, string(k))
	}
	return keyOf("kind", kind, func(v *document.Value) (agency.ForgeKind, error) {
		text, err := v.AsString()
		if err == nil {
			err = oneOf(kinds...)(text)
		}
		return agency.ForgeKind(text), err
	}, func(k agency.ForgeKind) string { return quote(string(k)) })
}

// checkRemote checks the name of a remote. It refuses a URL: the configuration of git decides where work
// goes.
func checkRemote(s string) error {
	if strings.ContainsAny(s, ":/ ") || strings.HasPrefix(s, "-") || plain.LineProblem(s) != "" {
		return fmt.Errorf("must be the name of a remote, not %q", clip(s))
	}
	return nil
}

// checkTarget checks the name of a branch; empty leaves the choice open.
func checkTarget(s string) error {
	if s != "" && checkRef(s) != nil {
		return fmt.Errorf("must be a branch, not %q", clip(s))
	}
	return nil
}

// oneOf returns the check of a text with a fixed set of values.
func oneOf(values ...string) func(string) error {
	return func(text string) error {
		if slices.Contains(values, text) {
			return nil
		}
		return fmt.Errorf("must be one of %s, not %q", strings.Join(values, ", "), clip(text))
	}
}

func texts[T ~string](values []T) []string {
	list := make([]string, 0, len(values))
	for _, value := range values {
		list = append(list, string(value))
	}
	return list
}

// commandKey binds a file of the repository, or a program and its arguments.
func commandKey(name string, p *[]string) key {
	return keyOf(name, p, func(v *document.Value) ([]string, error) {
		switch v.Kind {
		case document.Text:
			if err := checkLocal(v.Text); err != nil {
				return nil, document.Hinted(err, fmt.Sprintf(`a program and its arguments are a list: %s = ["make", "deps"]`, name))
			}
			return []string{"./" + strings.TrimPrefix(v.Text, "./")}, nil
		case document.List:
			argv, err := v.AsStrings(checkText)
			if err == nil {
				err = checkArgv(argv)
			}
			return argv, err
		default:
			return nil, fmt.Errorf("must be a file of the repository, or a list of a program and its arguments, not %s", v.Words())
		}
	}, func(argv []string) string { return quote(strings.Join(argv, " ")) })
}

func checkArgv(argv []string) error {
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
	return nil
}

func checkType(s string) error {
	if err := agency.CheckWord("type", s); err != nil {
		return document.Hinted(fmt.Errorf("must be one word, not %q", clip(s)), agency.AsError(err).Hint)
	}
	return nil
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
	if _, err := handle.ParseFormat(s); err != nil {
		return fmt.Errorf("is not a format: %w", err)
	}
	return nil
}

// checkLocal refuses a path that is not plainly below the repository's root, and the paths of git
// and agency.
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
