package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// rooms returns the folders of the program's packages, such as internal/git.
func rooms(t *testing.T) []string {
	t.Helper()
	var rooms []string
	for _, root := range []string{"cmd", "docs", "internal"} {
		err := filepath.WalkDir(filepath.Join("..", root), func(path string, e fs.DirEntry, err error) error {
			if err != nil || !e.IsDir() {
				return err
			}
			files, err := filepath.Glob(filepath.Join(path, "*.go"))
			for _, file := range files {
				if !strings.HasSuffix(file, "_test.go") {
					rooms = append(rooms, strings.TrimPrefix(filepath.ToSlash(path), "../"))
					break
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(rooms) < 80 {
		t.Fatalf("found %d rooms only: %q", len(rooms), rooms)
	}
	return rooms
}

// Each room has one list of what it may import, and the page about the architecture names it.
func TestEveryRoomHasItsRule(t *testing.T) {
	t.Parallel()
	var linter struct {
		Linters struct {
			Settings struct {
				Depguard struct {
					Rules map[string]struct {
						Mode  string   `yaml:"list-mode"`
						Files []string `yaml:"files"`
					} `yaml:"rules"`
				} `yaml:"depguard"`
			} `yaml:"settings"`
		} `yaml:"linters"`
	}
	data, err := os.ReadFile("../.golangci.yml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, &linter); err != nil {
		t.Fatal(err)
	}
	for _, room := range rooms(t) {
		var names []string
		for name, rule := range linter.Linters.Settings.Depguard.Rules {
			if rule.Mode != "strict" {
				t.Errorf("the list of %s is not strict", name)
			}
			if covers(rule.Files, "/"+room+"/a.go") {
				names = append(names, name)
			}
		}
		if len(names) != 1 {
			t.Errorf("%s has the lists %q in .golangci.yml, want one", room, names)
		}
	}
}

// covers reports whether the globs of a rule choose a file; those that begin with ! exclude it.
func covers(globs []string, file string) bool {
	chosen := false
	for _, glob := range globs {
		pattern, excludes := strings.CutPrefix(glob, "!")
		pattern = regexp.QuoteMeta(pattern)
		pattern = strings.ReplaceAll(strings.ReplaceAll(pattern, `\*\*`, `.*`), `/\*`, `/[^/]*`)
		if !regexp.MustCompile(`^` + pattern + `$`).MatchString(file) {
			continue
		}
		if excludes {
			return false
		}
		chosen = true
	}
	return chosen
}

func TestArchitectureNamesEveryRoom(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, room := range rooms(t) {
		name := filepath.Base(room)
		if strings.HasPrefix(room, "internal/harness/") { // an agent: the registry lists them
			continue
		}
		if !regexp.MustCompile(`\b` + name + `/`).Match(page) {
			t.Errorf("architecture.md does not name %s", room)
		}
	}
}
