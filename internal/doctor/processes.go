package doctor

import (
	"fmt"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/git"
	"agency/internal/limit"
	"agency/internal/plain"
	"agency/internal/runner"
)

// leaveLimit is how long the wrapper of an ended attempt may take to end: it reports the end of its
// runner before its own.
const leaveLimit = 10 * time.Second

// checkProcesses finds processes that are left of ended attempts. orphans should be gone: an
// attempt started them, or they work in a removed worktree. notes are other processes in the
// worktree of an ended run, such as the user's own shell.
func (d *Doctor) checkProcesses(runs []agency.Run) (orphans, notes []api.Check) {
	over, byID := []runner.Over{}, make(map[agency.RunID]*agency.Run, len(runs))
	for i := range runs {
		r := &runs[i]
		byID[r.ID] = r
		last := r.Attempt.Number
		if !r.Attempt.State.Final() {
			last--
		}
		for n := 1; n <= last; n++ {
			o := runner.Over{Run: r.ID, Attempt: n}
			if n == r.Attempt.Number {
				o.Dirs = []string{r.Worktree, git.Aside(r.Worktree)}
			}
			over = append(over, o)
		}
	}
	strays, err := runner.Strays(over, d.Serving)
	if err != nil {
		return []api.Check{failed("processes", err)}, nil
	}
	for i := range strays {
		p := &strays[i]
		r := byID[p.Of.Run]
		if d.leaving(p, r) {
			continue
		}
		c := api.Check{Name: "orphan process", Level: levelWarning, Fix: fmt.Sprintf("kill %d", p.PID)}
		if p.Foreign {
			c.Fix = "sudo " + c.Fix
		}
		what := fmt.Sprintf("%d (%s)", p.PID, plain.Visible(p.Program))
		switch {
		case p.Marked:
			c.Text = fmt.Sprintf("%s, started by attempt %d of %s, which is over", what, p.Of.Attempt, r.Ref())
		case r.RemovedAt != nil:
			c.Text = fmt.Sprintf("%s works in the worktree of %s, which was removed", what, r.Ref())
		default:
			c.Name, c.Level = "process", levelNote
			c.Text, c.Fix = fmt.Sprintf("%s works in the worktree of %s, which has ended", what, r.Ref()), ""
			notes = append(notes, c)
			continue
		}
		orphans = append(orphans, c)
	}
	return append(orphans, groups(byID)...), notes
}

// groups returns findings about the control groups of attempts that have ended.
func groups(byID map[agency.RunID]*agency.Run) []api.Check {
	var left []api.Check
	for _, g := range limit.All() {
		r := byID[g.Run]
		if r == nil || g.Attempt == r.Attempt.Number && !r.Attempt.State.Final() {
			continue
		}
		left = append(left, api.Check{
			Name: "control group", Level: levelWarning, Text: fmt.Sprintf("%s limited attempt %d of %s, which is over", g.Folder, g.Attempt, r.Ref()),
			Fix: "rmdir " + g.Folder,
		})
	}
	return left
}

// leaving reports whether a process is the wrapper of an attempt that ended just now, which still
// has its last steps to do.
func (d *Doctor) leaving(p *runner.Stray, r *agency.Run) bool {
	a := &r.Attempt
	return p.Of.Attempt == a.Number && a.Wrapper != nil && a.Wrapper.PID == p.PID && a.EndedAt != nil && d.Elapsed(*a.EndedAt) < leaveLimit
}
