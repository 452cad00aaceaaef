package menu

import (
	"context"
	"slices"
	"strings"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/tui/page"
	"agency/internal/view"
)

// action is something that the user can choose. do returns what to print.
type action struct {
	does   string
	text   string // the prompt for the text that it needs; empty if it needs none
	sure   string // the question that comes first, with %s for the name; empty if there is none
	says   string // what is printed when it begins; empty if it is quick
	many   bool   // it can be done with several runs
	leaves bool   // the menu leaves the run afterwards
	do     func(ctx context.Context, text string) (string, error)
}

// titles returns the rows of actions.
func titles(actions []action) []string {
	rows := make([]string, len(actions))
	for i := range actions {
		rows[i] = actions[i].does
	}
	return rows
}

// outcome returns what to print after an action: what was done, or the caveat if there is one.
func outcome(name, done, caveat string) string {
	if caveat != "" {
		return name + ": " + caveat
	}
	return name + " " + done
}

// act prints actions, and does the one that the user chooses. name is that of their object.
func (con *console) act(ctx context.Context, name string, actions []action) error {
	for {
		c, err := con.choose(ctx, "number of an action", titles(actions))
		if err != nil || c.letter == back {
			return err
		}
		if len(c.rows) > 0 {
			_, err = con.do(ctx, name, &actions[c.rows[0]])
			return err
		}
	}
}

// ready asks for the text and the yes that an action needs. ok is false if the user gives none.
func (con *console) ready(ctx context.Context, name string, a *action) (text string, ok bool, err error) {
	if a.text != "" {
		if text, err = con.text(ctx, a.text); err != nil || text == "" {
			return "", false, err
		}
	}
	if a.sure != "" {
		if sure, err := con.sure(ctx, strings.Replace(a.sure, "%s", name, 1)); err != nil || !sure {
			return "", false, err
		}
	}
	if a.says != "" {
		con.say("%s %s", a.says, name)
	}
	return text, true, nil
}

// do does an action, and reports whether it was done.
func (con *console) do(ctx context.Context, name string, a *action) (bool, error) {
	text, ok, err := con.ready(ctx, name, a)
	if err != nil || !ok {
		return false, err
	}
	said, err := a.do(ctx, text)
	if err != nil {
		return false, con.fail(err)
	}
	for line := range strings.Lines(said) {
		con.say("%s", line)
	}
	return true, nil
}

// several does an action with several runs of the list, one after the other. It offers the actions that
// each of them allows now.
func (m *Menu) several(ctx context.Context, rows []int) error {
	runs := make([]api.Run, len(rows))
	can := make([][]action, len(rows))
	for i, at := range rows {
		runs[i] = m.runs.numbered[at]
		can[i] = slices.DeleteFunc(m.actions(&runs[i], nil), func(a action) bool { return !a.many })
	}
	shared := slices.DeleteFunc(slices.Clone(can[0]), func(a action) bool {
		return slices.ContainsFunc(can, func(of []action) bool { return !slices.Contains(titles(of), a.does) })
	})
	m.console.say("%s", named(runs))
	if len(shared) == 0 {
		m.console.say("nothing can be done with all of them")
		return nil
	}
	c, err := choice{letter: again}, error(nil)
	for err == nil && c.letter == again {
		c, err = m.console.choose(ctx, "number of an action", titles(shared))
	}
	if err != nil || c.letter == back {
		return err
	}
	a := &shared[c.rows[0]]
	text, ok, err := m.console.ready(ctx, named(runs), a)
	if err != nil || !ok {
		return err
	}
	for i := range runs {
		at := slices.Index(titles(can[i]), a.does)
		said, err := can[i][at].do(ctx, text)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			e := agency.AsError(err)
			m.console.inform(agency.Errorf(e.Code, "%s: %s", runs[i].Ref(), e.Message).WithHint("%s", e.Hint))
			continue
		}
		m.console.say("%s", said)
	}
	return nil
}

// actions returns the actions that a run allows now, the most likely first. answers are those that
// answer its request.
func (m *Menu) actions(r *api.Run, answers []action) []action {
	readings, landing, talk, life := m.readings(r), m.landing(r), m.talk(r), m.life(r)
	order := [][]action{readings, talk, landing, life}
	switch {
	case r.NeedsYou():
		order = [][]action{answers, talk, readings, landing, life}
	case r.Status == agency.ReadyForReview || r.Status == agency.LabelCompleted:
		order = [][]action{landing, readings, talk, life}
	case r.State.Final():
		order = [][]action{readings, life, landing}
	}
	return append(slices.Concat(order...), m.others(r)...)
}

// talk returns the actions that reach the agent of a run in the state running.
func (m *Menu) talk(r *api.Run) []action {
	d, run, name := &m.o.Daemon, string(r.ID), r.Ref()
	if r.State != agency.Running {
		return nil
	}
	actions := []action{{does: "attach to its terminal", do: func(context.Context, string) (string, error) { return m.attach(r) }}}
	if r.Request == nil || r.Mode == agency.ModeProtocol {
		actions = append(actions, action{does: "send a message", text: "the message", many: true, do: func(ctx context.Context, text string) (string, error) {
			resp, err := d.SendInput(ctx, api.SendInputRequest{Run: run, Text: text})
			if err == nil && !resp.Confirmed {
				return name + ": typed, but agency did not see the agent accept it", nil
			}
			return name + " got the message", err
		}})
	}
	if busy := r.Request != nil || slices.Contains([]agency.Label{agency.Working, agency.Active, agency.Stalled}, r.Status); busy && r.Mode == agency.ModeProtocol {
		actions = append(actions, action{does: "interrupt what it does", many: true, do: func(ctx context.Context, _ string) (string, error) {
			caveat, err := page.InterruptRun(ctx, d, run)
			return outcome(name, "is interrupted", caveat), err
		}})
	}
	return actions
}

// life returns the actions that end a run or, when it has ended, resume or remove it.
func (m *Menu) life(r *api.Run) []action {
	d, run, name := &m.o.Daemon, string(r.ID), r.Ref()
	if !r.State.Final() {
		return []action{{does: "stop it", sure: "stop %s? the worktree stays", says: "stopping", many: true, do: func(ctx context.Context, _ string) (string, error) {
			_, err := d.StopRun(ctx, api.RunRequest{Run: run})
			return name + " is stopped", err
		}}}
	}
	actions := []action{}
	if r.Status == agency.LabelRemoving {
		return actions
	}
	if r.Status != agency.Merged {
		actions = append(actions, action{does: "resume it", sure: "resume %s?", says: "resuming", many: true, do: func(ctx context.Context, _ string) (string, error) {
			caveat, err := page.ResumeRun(ctx, d, api.ResumeRunRequest{Run: run, Env: m.o.Env, Config: m.o.Config})
			return outcome(name, "continues", caveat), err
		}})
	}
	return append(actions, action{does: "remove it", sure: "remove %s? unsaved work is saved first", says: "removing", many: true, leaves: true, do: func(ctx context.Context, _ string) (string, error) {
		resp, err := d.RemoveRun(ctx, api.RemoveRunRequest{Run: run})
		return outcome(name, "is removed", page.Warned("removed", resp.Warnings)), err
	}})
}

// landing returns the actions on the work of a run. All but the first are there until the work has
// landed, while the agent asks nothing.
func (m *Menu) landing(r *api.Run) []action {
	d, run, name, env, config := &m.o.Daemon, string(r.ID), r.Ref(), m.o.Env, m.o.Config
	actions := []action{{does: "what it changed", do: func(ctx context.Context, _ string) (string, error) {
		v := &review{run: r, daemon: d, console: m.console, env: env, config: config}
		return "", v.changes(ctx)
	}}}
	if r.Request != nil || slices.Contains([]agency.Label{agency.Merged, agency.Abandoned, agency.Broken, agency.LabelRemoving, agency.LabelQueued}, r.Status) {
		return actions
	}
	actions = append(actions, action{does: "run the checks of its branch", says: "checking", many: true, do: func(ctx context.Context, _ string) (string, error) {
		resp, err := d.VerifyRun(ctx, api.VerifyRunRequest{Run: run, Env: env, Config: config})
		if err == nil && !resp.Passed {
			return "", agency.Errorf(agency.CodeInvalidState, "%s did not pass the checks", name).WithHint("agency verify %s", name)
		}
		return name + " passed the checks", err
	}})
	if r.Status != agency.Working && r.Status != agency.Active {
		actions = append(actions, action{does: "merge it into its branch", sure: "merge %s into its branch?", says: "checking and merging", many: true, do: func(ctx context.Context, _ string) (string, error) {
			resp, err := d.MergeRun(ctx, api.MergeRunRequest{Run: run, Env: env, Config: config})
			return strings.Join(append([]string{name + " is merged"}, resp.Warnings...), "\n"), err
		}})
	}
	return append(actions, action{does: "queue it to land", sure: "queue %s to land in its branch?", many: true, do: func(ctx context.Context, _ string) (string, error) {
		_, err := d.AddToQueue(ctx, api.AddToQueueRequest{Runs: []string{run}, Env: env, Config: config})
		return name + " is queued to land", err
	}})
}

// others returns the actions that users seldom need.
func (m *Menu) others(r *api.Run) []action {
	d, run, name := &m.o.Daemon, string(r.ID), r.Ref()
	actions := []action{}
	if r.Status != agency.LabelRemoving && r.State != agency.Queued {
		actions = append(actions, action{does: "save its work in a snapshot", says: "saving", many: true, do: func(ctx context.Context, _ string) (string, error) {
			caveat, err := page.SaveRun(ctx, d, run)
			return outcome(name, "is saved", caveat), err
		}})
	}
	if canMove(r) {
		actions = append(actions, action{does: "continue it in another mode", do: func(ctx context.Context, _ string) (string, error) { return m.move(ctx, r) }})
	}
	snooze := func(does, done string, wait time.Duration) action {
		return action{does: does, many: true, do: func(ctx context.Context, _ string) (string, error) {
			return name + " " + done, page.SnoozeRun(ctx, d, run, wait)
		}}
	}
	switch group := view.GroupOf(r); {
	case group == view.GroupSnoozed:
		actions = append(actions, snooze("end the snooze of its alerts", "is no longer snoozed", page.SnoozeOver))
	case group != view.GroupWorking && group != view.GroupRest || r.Status == agency.LabelCompleted: // others have no alerts
		actions = append(actions, snooze("snooze its alerts for an hour", "is snoozed for an hour", page.Snooze))
	}
	return actions
}

// canMove reports whether a run has a conversation that can continue in another mode now.
func canMove(r *api.Run) bool {
	switch {
	case r.Conversation == "" || r.Status == agency.Merged || r.Status == agency.LabelRemoving:
		return false
	case r.State.Final():
		return true
	default:
		return r.State == agency.Running && r.Request == nil && r.Status != agency.Working && r.Status != agency.Active
	}
}

// move continues a run in the mode that the user chooses, with a task or without one.
func (m *Menu) move(ctx context.Context, r *api.Run) (string, error) {
	modes := slices.DeleteFunc(agency.Modes(), func(mode agency.Mode) bool { return mode == r.Mode && !r.State.Final() })
	rows := make([]string, len(modes))
	for i, mode := range modes {
		rows[i] = string(mode)
	}
	c, err := m.console.choose(ctx, "number of a mode", rows)
	if err != nil || len(c.rows) == 0 {
		return "", err
	}
	mode := modes[c.rows[0]]
	task, err := m.console.text(ctx, "a task for it")
	if err != nil || task == "" && mode == agency.ModeHeadless {
		return "in the mode headless an agent needs a task; nothing was done", err
	}
	m.console.say("moving %s", r.Ref())
	caveat, err := page.ResumeRun(ctx, &m.o.Daemon, page.ReadMode(string(r.ID), string(mode)+" "+task, m.o.Env, m.o.Config))
	return outcome(r.Ref(), "continues in the mode "+string(mode), caveat), err
}
