package tui

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// docs/tui.md has the table of keys.
func TestDocsKeys(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "docs", "tui.md")
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(page), "<!-- keys -->\n")
	_, tail, also := strings.Cut(rest, "<!-- end of keys -->\n")
	if !ok || !also {
		t.Fatalf("%s has no place for the keys", path)
	}
	table := "| key | what it does | name |\n|---|---|---|\n"
	group := ""
	for _, b := range allBindings(sit(t, 80, 24).m) {
		if b.Group != group {
			group = b.Group
			table += fmt.Sprintf("| **%s** | | |\n", group)
		}
		name := ""
		if b.Name != "" {
			name = "`" + b.Name + "`"
		}
		table += fmt.Sprintf("| `%s` | %s | %s |\n", strings.ReplaceAll(b.Shown, "|", "\\|"), b.Does, name)
	}
	want := head + "<!-- keys -->\n" + table + "<!-- end of keys -->\n" + tail
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if string(page) != want {
		t.Errorf("%s is stale: go test ./internal/tui -update", path)
	}
}
