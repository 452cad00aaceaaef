package landing_test

import (
	"testing"

	"agency"
	"agency/internal/landing"
)

func TestDescribe(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, summary, task string
		messages            []string
		want                string
	}{
		{"one commit keeps its message", "done", "task", []string{"Fix it\n\nBecause.\n"}, "Fix it\n\nBecause.\n"},
		{"several are listed below the summary", "Fixed login", "task", []string{"a\n\nmore", "b"}, "Fixed login\n\n* a\n* b\n"},
		{"without commits the task is what is known", "", "fix the login\nplease", nil, "fix the login\n"},
		{"a task may begin with a heading", "", "# Fix the login\n\nIt is broken.", nil, "Fix the login\n"},
		{"the number of an issue is no heading", "#12 is fixed", "", nil, "#12 is fixed\n"},
		{"nothing is known", "", "", nil, "Work of run\n"},
	} {
		if got := landing.Describe("run", c.summary, c.task, c.messages); got != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

func TestTrailer(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		"a\n":                           "a\n\nAgency-Run: r\n",
		"a: b\n":                        "a: b\n\nAgency-Run: r\n",
		"a\n\nbody\n":                   "a\n\nbody\n\nAgency-Run: r\n",
		"a\n\nSigned-off-by: A <a@b>\n": "a\n\nSigned-off-by: A <a@b>\nAgency-Run: r\n",
		"a\n\nAgency-Run: r\n":          "a\n\nAgency-Run: r\n",
	} {
		if got := landing.WithTrailer(message, "r"); got != want {
			t.Errorf("%q becomes %q", message, got)
		}
	}
}

// A candidate that lacks something of the run, has something else, or changes what the run did not
// change is refused.
func TestProve(t *testing.T) {
	t.Parallel()
	file := func(path, from, to string) agency.ChangedFile {
		return agency.ChangedFile{Path: path, From: from, To: to}
	}
	list := func(files ...agency.ChangedFile) []agency.ChangedFile { return files }
	for _, c := range []struct {
		name  string
		facts landing.Facts
		ok    bool
	}{
		{"what the run did", landing.Facts{Source: list(file("a", "1", "2")), Target: list(file("b", "1", "2")), Candidate: list(file("a", "1", "2"))}, true},
		{"nothing of it", landing.Facts{Source: list(file("a", "1", "2"))}, false},
		{"another content", landing.Facts{Source: list(file("a", "1", "2")), Candidate: list(file("a", "1", "3"))}, false},
		{"more than it did", landing.Facts{Source: list(file("a", "1", "2")), Candidate: list(file("a", "1", "2"), file("c", "1", ""))}, false},
		{"a file that both changed", landing.Facts{Source: list(file("a", "1", "2")), Target: list(file("a", "1", "3")), Candidate: list(file("a", "3", "4"))}, true},
		{"a file that went in the target is back", landing.Facts{Source: list(file("a", "1", "2")), Target: list(file("c", "1", "")), Candidate: list(file("a", "1", "2"), file("d", "", "1"))}, false},
		{"a change followed to the new name", landing.Facts{
			Source: list(file("old", "1", ""), file("new", "", "1")), Target: list(file("old", "1", "2")), Candidate: list(file("old", "2", ""), file("new", "", "2")),
		}, true},
		{"the same change on both sides", landing.Facts{Source: list(file("a", "1", "2")), Target: list(file("a", "1", "2"))}, true},
	} {
		err := landing.Prove(c.facts)
		if (err == nil) != c.ok || err != nil && !agency.IsCode(err, agency.CodeIntegrity) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
