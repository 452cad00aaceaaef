package terminal_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"agency/test/fixture"
)

// In real shells a tab completes commands, runs, values of flags, branches and keys of the
// configuration.
func TestCompletionInShells(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ load, args string }{
		"bash": {"PS1='here: '; source agency.bash", "--norc -i"},
		"zsh":  {"autoload -U compinit; compinit -u -D; PS1='%1~: '; source agency.zsh", "-f -i"},
		"fish": {"function fish_prompt; echo 'here: '; end; source agency.fish", "-N -i"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			need(t, name)
			f := fixture.New(t, bin)
			start(t, f, "exec sleep 1000", "--name", "fix-the-login-test")
			script := succeeds(t, f.Agency("completion", name))
			if err := os.WriteFile(filepath.Join(f.Repo, "agency."+name), []byte(script), 0o600); err != nil {
				t.Fatal(err)
			}
			p := shell(t, server(t, f), 100, 24)
			p.enters("exec " + name + " " + test.args)
			p.enters(test.load + "; clear; echo loaded")
			p.line("loaded")
			for typed, completed := range map[string]string{
				"agency expl":                   "agency explain .",
				"agency show fix-t":             "agency show fix-the-login-test .",
				"agency ls -o nam":              "agency ls -o name .",
				"agency run --base m":           "agency run --base main .",
				"agency config get defaults.ru": "agency config get defaults.runner .",
			} {
				for tries, done := 20, false; !done; tries-- { // a completion may end empty while the daemon is busy
					if tries == 0 {
						t.Fatalf("%q is not completed", typed)
					}
					p.types(typed)
					p.shows(typed)
					p.keys("Tab")
					p.types(".") // after the space that ends a completed word, unlike in a suggestion
					p.until(strconv.Quote(completed)+" is shown", func(screen string) bool {
						done = strings.Contains(screen, completed)
						return done || strings.Contains(screen, typed+".")
					})
					p.keys("C-u")
					p.enters("clear")
					p.until("the screen is clear", func(screen string) bool { return !strings.Contains(screen, typed) })
				}
			}
		})
	}
}
