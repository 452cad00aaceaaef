package menu

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"agency"
	"agency/internal/api"
	"agency/internal/diffview"
	"agency/internal/tui/about"
	"agency/internal/tui/cell"
)

// fileBytes is how much of the patch of one file is read.
const fileBytes = 1 << 20

// readings returns what can be read of a run.
func (m *Menu) readings(r *api.Run) []action {
	d, run := &m.o.Daemon, string(r.ID)
	text := func(does string, read func(ctx context.Context) ([]cell.Line, error)) action {
		return action{does: does, read: true, do: func(ctx context.Context, _ string) (string, error) {
			lines, err := read(ctx)
			return plainly(lines), err
		}}
	}
	return []action{
		{does: "read its screen", read: true, do: func(ctx context.Context, _ string) (string, error) { return m.screen(ctx, run) }},
		{does: "what it changed", read: true, do: func(ctx context.Context, _ string) (string, error) { return "", m.changes(ctx, r) }},
		text("why it has its status", func(ctx context.Context) ([]cell.Line, error) { return about.Why(ctx, d, run) }),
		text("the end of its log", func(ctx context.Context) ([]cell.Line, error) { return about.Log(ctx, d, run) }),
		text("the messages that it got", func(ctx context.Context) ([]cell.Line, error) { return about.Messages(ctx, d, run, m.names()) }),
		text("what happened to it, the newest first", func(ctx context.Context) ([]cell.Line, error) { return about.Events(ctx, d, run) }),
	}
}

// names returns what users call the runs of the list, by their ids.
func (m *Menu) names() map[string]string {
	names := map[string]string{}
	for i := range m.runs {
		names[string(m.runs[i].ID)] = m.runs[i].Ref()
	}
	return names
}

// plainly returns lines without their styles.
func plainly(lines []cell.Line) string {
	if len(lines) == 0 {
		return "there is nothing"
	}
	var text strings.Builder
	for _, line := range lines {
		text.WriteString(line.Text() + "\n")
	}
	return text.String()
}

func (m *Menu) screen(ctx context.Context, run string) (string, error) {
	resp, err := m.o.Daemon.ShowScreen(ctx, api.ShowScreenRequest{Run: run})
	var text strings.Builder
	for _, row := range resp.Screen.Rows {
		for i := range row {
			text.WriteString(row[i].Text)
		}
		text.WriteString("\n")
	}
	return strings.TrimRight(text.String(), "\n"), err
}

// changes lists the files that a run changed, and reads those that the user chooses.
func (m *Menu) changes(ctx context.Context, r *api.Run) error {
	return m.browse(ctx, "number of a file", "nothing has changed", func() ([]string, func(int) error, error) {
		resp, err := m.o.Daemon.DiffRun(ctx, api.DiffRunRequest{Run: string(r.ID), List: true})
		if left := resp.LeftOut.Files; left > 0 {
			m.say("%d more files are too large to show: agency diff %s", left, r.Ref())
		}
		rows := make([]string, len(resp.List))
		for i := range resp.List {
			f := &resp.List[i]
			rows[i] = fmt.Sprintf("%s %s, +%d -%d lines", f.Status, f.Path, f.Added, f.Deleted)
			if f.Binary {
				rows[i] = fmt.Sprintf("%s %s, binary", f.Status, f.Path)
			}
		}
		return rows, func(i int) error { return m.file(ctx, r, resp.List[i].Path) }, err
	})
}

// file reads what changed in a file, and takes comments on its lines.
func (m *Menu) file(ctx context.Context, r *api.Run, path string) error {
	resp, err := m.o.Daemon.DiffRun(ctx, api.DiffRunRequest{Run: string(r.ID), File: path, MaxBytes: fileBytes})
	if err != nil {
		return m.fail(err)
	}
	hunks, notes := diffview.Parse(resp.Patch)
	m.sayLines(strings.Join(notes, "\n"))
	for i := range hunks {
		m.say("at line %d %s", max(hunks[i].New, 1), hunks[i].Header)
		for j := range hunks[i].Lines {
			m.sayLine(&hunks[i].Lines[j])
		}
	}
	if resp.Truncated {
		m.say("there is more of it: agency diff %s shows all", r.Ref())
	}
	return m.comment(ctx, r, path)
}

func (m *Menu) sayLine(l *diffview.Line) {
	switch l.Kind {
	case diffview.Added:
		m.say("added %d: %s", l.New, l.Text)
	case diffview.Deleted:
		m.say("deleted -%d: %s", l.Old, l.Text)
	case diffview.Note:
		m.say("%s", l.Text)
	case diffview.Same:
		m.say("%d: %s", l.New, l.Text)
	}
}

// comment keeps a comment on a line, or sends those that are kept.
func (m *Menu) comment(ctx context.Context, r *api.Run, path string) error {
	line, err := m.ask(ctx, "number of a line, with its - if it is deleted, and behind it a comment, s: send the comments to the agent, b: back, q: leave")
	switch {
	case err != nil || line == "b" || line == "":
		return err
	case line == "s":
		resp, err := m.o.Daemon.SendComments(ctx, api.SendCommentsRequest{Run: string(r.ID)})
		switch {
		case err != nil:
			return m.fail(err)
		case !resp.Confirmed:
			m.say("typed, but agency did not see the agent accept it")
		default:
			m.say("the comments are sent")
		}
		return nil
	}
	number, text, _ := strings.Cut(line, " ")
	at, wrong := strconv.Atoi(number)
	if wrong != nil || at == 0 || strings.TrimSpace(text) == "" {
		return m.fail(agency.Errorf(agency.CodeUsage, "%q is not a number and a comment", line).WithHint("such as: 12 why this?"))
	}
	comment := api.CommentRequest{File: path, Line: max(at, -at), Old: at < 0, Text: strings.TrimSpace(text)}
	_, err = m.o.Daemon.AddComments(ctx, api.AddCommentsRequest{Run: string(r.ID), Comments: []api.CommentRequest{comment}})
	if err != nil {
		return m.fail(err)
	}
	m.say("comment on line %d of %s kept", at, path)
	return nil
}
