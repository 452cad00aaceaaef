package diff

import (
	"context"
	"fmt"

	tea "charm.land/bubbletea/v2"

	"agency"
	"agency/internal/api"
	"agency/internal/tui/field"
	"agency/internal/tui/page"
)

// comment returns the comment at the cursor; nil where there is none.
func (f *file) comment() *agency.LineComment {
	if f.cursor >= len(f.rows) {
		return nil
	}
	return f.rows[f.cursor].comment
}

func (p *Page) startComment() tea.Cmd {
	about, ok := p.file.place()
	if !ok {
		return p.desk.Say("there is no line at the cursor to comment on")
	}
	p.typing, p.field, p.about, p.edited = comment, field.New(""), about, 0
	if c := p.file.comment(); c != nil && c.State != agency.CommentSent {
		p.field, p.edited = field.New(c.Text), c.Number
	}
	return nil
}

// keepComment keeps a comment. One that it replaces is discarded after that.
func (p *Page) keepComment(text string) tea.Cmd {
	about, old, run, d := p.about, p.edited, p.run.ID, &p.desk.Daemon
	req := api.AddCommentsRequest{Run: string(run), Comments: []api.CommentRequest{{File: about.path, Line: about.line, Old: about.old, Text: text}}}
	return p.desk.Act("keeping the comment", fmt.Sprintf("comment on %s:%d kept; S sends it", about.path, about.line), func(ctx context.Context) error {
		_, err := d.AddComments(ctx, req)
		if err == nil && old > 0 {
			_, err = d.DiscardComments(ctx, api.DiscardCommentsRequest{Run: string(run), Numbers: []int{old}})
		}
		return err
	})
}

// discard discards the comment at the cursor.
func (p *Page) discard() tea.Cmd {
	c := p.file.comment()
	switch {
	case c == nil:
		return p.desk.Say("there is no comment at the cursor")
	case c.State == agency.CommentSent:
		return p.desk.Say("the agent has that comment already")
	}
	run, number, d := p.run.ID, c.Number, &p.desk.Daemon
	return p.desk.Confirm("discard the comment?", func() tea.Cmd {
		return p.desk.Act("discarding", "the comment is discarded", func(ctx context.Context) error {
			_, err := d.DiscardComments(ctx, api.DiscardCommentsRequest{Run: string(run), Numbers: []int{number}})
			return err
		})
	})
}

func (p *Page) send() tea.Cmd {
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
	return p.desk.Confirm(fmt.Sprintf("send %s to the agent of %s?", comments(open), p.run.Ref()), func() tea.Cmd {
		return p.desk.Act("sending the comments", "the comments are sent", func(ctx context.Context) error { return sendComments(ctx, d, run) })
	})
}

func sendComments(ctx context.Context, d *page.Daemon, run agency.RunID) error {
	resp, err := d.SendComments(ctx, api.SendCommentsRequest{Run: string(run)})
	if err == nil && !resp.Confirmed {
		return agency.Errorf(agency.CodeInvalidState, "agency typed the comments, but did not see the agent accept them").WithHint("look at the run: enter attaches")
	}
	return err
}

// comments returns a number of them in words.
func comments(n int) string {
	if n == 1 {
		return "1 comment"
	}
	return fmt.Sprintf("%d comments", n)
}
