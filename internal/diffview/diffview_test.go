package diffview_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agency/internal/diffview"
)

const patch = `diff --git a/login.go b/login.go
old mode 100644
index 1..2 100644
--- a/login.go
+++ b/login.go
@@ -3,3 +3,4 @@ func Login() {
 	same
-	old
+	new
+	more
 	end
@@ -20 +21 @@
--- a title
+++ a title
\ No newline at end of file
`

// Lines have their numbers on both sides, also those that look like the names of a file.
func TestParse(t *testing.T) {
	t.Parallel()
	hunks, notes := diffview.Parse(patch)
	got := []string{}
	for _, h := range hunks {
		got = append(got, "@"+h.Header)
		for _, l := range h.Lines {
			got = append(got, fmt.Sprintf("%c%d/%d%s", l.Kind, l.Old, l.New, l.Text))
		}
	}
	want := []string{
		"@func Login() {", " 3/3\tsame", "-4/0\told", "+0/4\tnew", "+0/5\tmore", " 5/6\tend",
		"@", "-20/0-- a title", "+0/21++ a title", "\\0/0 No newline at end of file",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"old mode 100644"}, notes); diff != "" {
		t.Error(diff)
	}
}

func TestPairs(t *testing.T) {
	t.Parallel()
	hunks, _ := diffview.Parse(patch)
	got := []string{}
	for _, p := range hunks[0].Pairs() {
		side := func(l *diffview.Line) string {
			if l == nil {
				return "."
			}
			return strings.TrimSpace(l.Text)
		}
		got = append(got, side(p.Old)+"|"+side(p.New))
	}
	if diff := cmp.Diff([]string{"same|same", "old|new", ".|more", "end|end"}, got); diff != "" {
		t.Error(diff)
	}
}

// No piece of a line is lost, whatever it holds.
func TestLex(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		`x.go: return "a\"b" + 12 // why`:  `K[return]T[ ]S["a\"b"]T[ + ]N[12]T[ ]C[// why]`,
		`x.py: def f(x): # it's`:           `K[def]T[ f(x): ]C[# it's]`,
		"x.sql: SELECT 'a' -- b":           `K[SELECT]T[ ]S['a']T[ ]C[-- b]`,
		`x.md: return 'plain`:              `T[return 'plain]`,
		`x.ts: const s = "never closed; 1`: `K[const]T[ s = ]S["never closed; 1]`,
		"x.go: a/b → 界 / \xff //":          "T[a/b → 界 / \xff ]C[//]",
	} {
		file, line, _ := strings.Cut(name, ": ")
		got, whole := "", ""
		for _, token := range diffview.Lex(file, line) {
			got += fmt.Sprintf("%c[%s]", "TKSCN"[token.Sort], token.Text)
			whole += token.Text
		}
		if got != want || whole != line {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(patch)
	f.Fuzz(func(_ *testing.T, text string) {
		hunks, _ := diffview.Parse(text)
		for i := range hunks {
			hunks[i].Pairs()
			for _, l := range hunks[i].Lines {
				diffview.Lex("x.go", l.Text)
			}
		}
	})
}

// The time that a line takes grows with its length alone.
func BenchmarkLex(b *testing.B) {
	line := strings.Repeat("a b, ", 200_000)
	for b.Loop() {
		diffview.Lex("x.go", line)
	}
}
