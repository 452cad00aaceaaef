package scheduler

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"agency"
	"agency/internal/duration"
	"agency/internal/plain"
)

// Report returns the report of a settled session in Markdown: the results of its agents, what went
// wrong, and how to test. Untrusted text stays plain: it makes no table, link, tag or heading. The
// same record gives the same bytes.
func Report(s *agency.Session, agents []agency.SessionAgent, results map[string]agency.AgentResult) []byte {
	var b strings.Builder
	title := s.Name
	if title == "" {
		title = s.Ref()
	}
	fmt.Fprintf(&b, "# %s: %s\n\n", plainText(title), s.Status)
	row := func(cells ...string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	row("", "")
	row("---", "---")
	row("session", "`"+s.Ref()+"`")
	row("repository", plainText(s.Repo.Root))
	if s.SourceFile != "" {
		row("plan", plainText(s.SourceFile))
	}
	row("agents", s.Counts.String())
	if landed := s.Landed(agents); landed != "" {
		row("landing", plainText(landed))
	}
	row("started", s.StartedAt.UTC().Format(time.RFC3339))
	if s.CompletedAt != nil {
		row("ended", s.CompletedAt.UTC().Format(time.RFC3339))
		row("took", duration.Exact(s.CompletedAt.Sub(s.StartedAt).Truncate(time.Second)))
	}
	if s.RetryOf != "" {
		row("retry of", "`"+string(s.RetryOf)+"`")
	}
	b.WriteString("\n## Agents\n\n")
	row("agent", "name", "wave", "status", "took", "attempts", "commits", "files", "lines", "tokens", "cost", "branch")
	row("---", "---", "--:", "---", "--:", "--:", "--:", "--:", "--:", "--:", "--:", "---")
	for i := range agents {
		row(agentCells(&agents[i], results)...)
	}
	problems(&b, agents, results)
	tests(&b, agents, results)
	return []byte(b.String())
}

func agentCells(a *agency.SessionAgent, results map[string]agency.AgentResult) []string {
	took := ""
	if d, ok := a.Duration(); ok {
		took = duration.Exact(d.Truncate(time.Second))
	}
	cells := []string{"`" + a.ID + "`", plainText(a.Name), strconv.Itoa(a.Wave), string(a.Status), took}
	r, ok := results[a.ID]
	if !ok {
		return append(cells, "", "", "", "", "", "", "")
	}
	branch := plainText(r.Branch)
	if r.Problem != "" {
		return append(cells, strconv.Itoa(a.Attempt), "", "", "", tokens(&r.Usage), cost(&r.Usage), branch)
	}
	commits := strconv.Itoa(r.Commits)
	if r.Dirty {
		commits += " and uncommitted"
	}
	return append(cells, strconv.Itoa(a.Attempt), commits, strconv.Itoa(r.Files), fmt.Sprintf("+%d -%d", r.Added, r.Deleted),
		tokens(&r.Usage), cost(&r.Usage), branch)
}

func tokens(u *agency.Usage) string {
	if u.InputTokens == nil && u.OutputTokens == nil {
		return ""
	}
	number := func(n *int64) string {
		if n == nil {
			return "?"
		}
		return strconv.FormatInt(*n, 10)
	}
	return number(u.InputTokens) + " in, " + number(u.OutputTokens) + " out"
}

func cost(u *agency.Usage) string {
	if u.CostUSD == nil {
		return ""
	}
	return fmt.Sprintf("$%.2f", *u.CostUSD)
}

func problems(b *strings.Builder, agents []agency.SessionAgent, results map[string]agency.AgentResult) {
	lines := []string{}
	for i := range agents {
		a := &agents[i]
		if a.Error != "" && a.Status != agency.AgentComplete {
			lines = append(lines, fmt.Sprintf("- `%s` %s: %s\n", a.ID, a.Status, plainText(a.Error)))
		}
		if a.Landing.State == agency.WorkRefused {
			lines = append(lines, fmt.Sprintf("- `%s` did not land: %s\n", a.ID, plainText(a.Landing.Note)))
		}
		if r := results[a.ID]; r.Problem != "" {
			lines = append(lines, fmt.Sprintf("- `%s` has no result to count: %s\n", a.ID, plainText(r.Problem)))
		} else if len(r.Nested) > 0 {
			lines = append(lines, fmt.Sprintf("- `%s`: other repositories, not in its result: %s\n", a.ID, plainText(strings.Join(r.Nested, ", "))))
		}
	}
	if len(lines) > 0 {
		b.WriteString("\n## Not well\n\n" + strings.Join(lines, ""))
	}
}

// tests quotes the agents' instructions for testing.
func tests(b *strings.Builder, agents []agency.SessionAgent, results map[string]agency.AgentResult) {
	titled := false
	for i := range agents {
		text := strings.TrimSpace(plain.Visible(results[agents[i].ID].Tests))
		if text == "" {
			continue
		}
		if !titled {
			titled = true
			b.WriteString("\n## How to test\n\nIn the words of the agents; agency has not checked them.\n")
		}
		fence := "```"
		for strings.Contains(text, fence) {
			fence += "`"
		}
		fmt.Fprintf(b, "\n`%s`:\n\n%stext\n%s\n%s\n", agents[i].ID, fence, text, fence)
	}
}

// plainText returns Markdown that shows a text unchanged, on one line: it escapes every character
// with a meaning, so that the text makes no table, link, tag, heading or automatic link.
func plainText(text string) string {
	var b strings.Builder
	for _, r := range strings.Join(strings.Fields(plain.Visible(text)), " ") {
		if strings.ContainsRune("\\`*_{}[]<>()#+!|~:@&$^=\"'", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return strings.ReplaceAll(b.String(), "www.", `www\.`)
}
