package landing

import (
	"cmp"
	"fmt"
	"strings"

	"agency"
)

// Offer is what a pull request shows about a run. Its texts are untrusted.
type Offer struct {
	ID       agency.RunID
	Ref      string           // the name of the run for users
	Task     string           // as the user wrote it
	Report   *agency.Contract // what the agent reported; nil for none
	Messages []string         // of the commits, the oldest first
	Checks   []agency.CheckResult
}

// PullRequest returns the title and the body of a pull request: what the agent reports of its work,
// the verdicts of the checks, and last the marker by which agency finds it again.
func PullRequest(o *Offer) (title, body string) {
	report := o.Report
	if report == nil {
		report = &agency.Contract{}
	}
	title = cmp.Or(headline(report.Summary), headline(o.Task), "Work of "+o.Ref)
	if len(o.Messages) == 1 {
		title = cmp.Or(headline(o.Messages[0]), title)
	}
	var b strings.Builder
	part := func(heading, text string) {
		if text = quoted(text); text == "" {
			return
		}
		if heading != "" {
			b.WriteString("## " + heading + "\n\n")
		}
		b.WriteString(text + "\n\n")
	}
	summary := report.Summary
	if len(o.Messages) == 1 {
		_, rest, _ := strings.Cut(clean(o.Messages[0]), "\n")
		summary = cmp.Or(summary, rest)
	}
	part("", summary)
	if len(o.Messages) > 1 {
		list := []string{}
		for _, m := range o.Messages {
			list = append(list, "- "+headline(m))
		}
		part("Commits", strings.Join(list, "\n"))
	}
	part("How to test", report.HowToTest)
	risks := []string{}
	for _, risk := range report.Risks {
		risks = append(risks, "- "+strings.TrimSpace(clean(risk)))
	}
	part("Risks", strings.Join(risks, "\n"))
	checks := []string{}
	for i := range o.Checks {
		c := &o.Checks[i]
		how := ""
		if c.Merged {
			how = " merged with " + c.Target
		}
		checks = append(checks, fmt.Sprintf("- %s: %s (%.12s%s)", c.Name, c.Verdict, c.Source, how))
	}
	part("Checks", strings.Join(checks, "\n"))
	b.WriteString(agency.PRMarker(o.ID) + "\n")
	return title, b.String()
}

// quoted returns a text that holds no comment of HTML, such as the marker of another run.
func quoted(text string) string {
	return strings.ReplaceAll(strings.TrimSpace(clean(text)), "<!--", "&lt;!--")
}
