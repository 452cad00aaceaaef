package diff

import (
	"context"
	"fmt"

	tea "charm.land/bubbletea/v2"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/term"
	"agency/internal/tui/field"
	"agency/internal/tui/page"
)

// draft is a comment that the user writes.
type draft struct {
	place place
	old   agency.LineComment // the comment that it replaces; without a number, it replaces none
}

// readComments reads the comments on the work of the run.
func (p *Page) readComments() tea.Cmd {
	d, ctx, run, env, config := &p.desk.Daemon, p.desk.Ctx, p.run.ID, p.desk.Env, p.desk.Config
	return func() tea.Msg {
		resp, err := d.ReviewRun(ctx, api.ReviewRunRequest{Run: string(run), Env: env, Config: config})
		return commentsMsg{run, resp.Comments, err}
	}
}

// startComment begins a comment on the line at the cursor, or edits the open comment there.
func (p *Page) startComment() tea.Cmd {
	c := p.openComment()
	if c == nil {
		about, ok := p.file.place(p.file.cursor.row)
		if !ok {
			return p.desk.Say("there is no line at the cursor to comment on")
		}
		p.typing, p.field, p.about = comment, field.New(""), draft{place: about}
		return nil
	}
	if c.Now == 0 {
		return p.desk.Say("its line has changed since: discard it, and comment on what is there now")
	}
	p.typing, p.field, p.about = comment, field.New(c.Text), draft{placeOf(c), *c}
	return nil
}

// openComment returns the open comment at the cursor, or the first open one on the line there; nil if there
// is none.
func (p *Page) openComment() *agency.LineComment {
	r := p.file.row()
	if r != nil && r.comment != nil {
		if r.comment.State == agency.CommentOpen {
			return r.comment
		}
		return nil
	}
	at, ok := p.file.place(p.file.cursor.row)
	for i := range p.comments {
		if c := &p.comments[i]; ok && c.State == agency.CommentOpen && placeOf(c) == at {
			return c
		}
	}
	return nil
}

// comment keeps a text as the comment of the draft. It discards the replaced comment last, so that a failure
// does not lose both.
func (p *Page) comment(text string) tea.Cmd {
	about, old, run, d := p.about.place, p.about.old, p.run.ID, &p.desk.Daemon
	if text == old.Text {
		return nil
	}
	req := api.CommentRequest{File: about.path, Line: about.line, Old: about.old, Text: text}
	if old.Last > old.Line {
		req.Last = about.line + old.Last - old.Line
	}
	return p.desk.Act("keeping the comment", fmt.Sprintf("comment on %s:%d kept; S sends it", about.path, about.line), func(ctx context.Context) error {
		_, err := d.AddComments(ctx, api.AddCommentsRequest{Run: string(run), Comments: []api.CommentRequest{req}})
		if err == nil && old.Number > 0 {
			_, err = d.DiscardComments(ctx, api.DiscardCommentsRequest{Run: string(run), Numbers: []int{old.Number}})
		}
		return err
	})
}

// discard discards the comment at the cursor.
func (p *Page) discard() tea.Cmd {
	r := p.file.row()
	switch {
	case r == nil || r.comment == nil:
		return p.desk.Say("there is no comment at the cursor")
	case r.comment.State == agency.CommentSent:
		return p.desk.Say("the agent has this comment already")
	}
	run, number, d := p.run.ID, r.comment.Number, &p.desk.Daemon
	return p.desk.Confirm(fmt.Sprintf("discard the comment %q?", term.Fit(term.SafeLine(r.comment.Text), 30)), func() tea.Cmd {
		return p.desk.Act("discarding", "the comment is discarded", func(ctx context.Context) error {
			_, err := d.DiscardComments(ctx, api.DiscardCommentsRequest{Run: string(run), Numbers: []int{number}})
			return err
		})
	})
}

// send sends the open comments to the agent, after a y.
func (p *Page) send() tea.Cmd {
	if p.unread != nil {
		ref := p.run.Ref()
		return p.desk.Fail(agency.Errorf(agency.AsError(p.unread).Code, "the comments on %s cannot be read: %w", ref, p.unread).
			WithHint("R reads them again; agency review %s --send sends them unseen", ref))
	}
	open := 0
	for i := range p.comments {
		if p.comments[i].State != agency.CommentSent {
			open++
		}
	}
	if open == 0 {
		return p.desk.Say("there is no comment to send: c makes one")
	}
	run, d := p.run.ID, &p.desk.Daemon
	return p.desk.Confirm(fmt.Sprintf("send %s to the agent of %s?", page.Count(open, "comment", "comments"), p.run.Ref()), func() tea.Cmd {
		return p.desk.Act("sending the comments", "the comments are sent", func(ctx context.Context) error { return sendComments(ctx, d, run) })
	})
}

// sendComments sends the open comments on a run to its agent.
func sendComments(ctx context.Context, d *page.Daemon, run agency.RunID) error {
	resp, err := d.SendComments(ctx, api.SendCommentsRequest{Run: string(run)})
	if err == nil && !resp.Confirmed {
		return agency.Errorf(agency.CodeInvalidState, "agency typed the comments, but did not see the agent accept them").WithHint("look at the run: enter attaches")
	}
	return err
}
