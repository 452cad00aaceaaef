package inspect

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"sync"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/term"
	"agency/internal/plain"
)

// comment records, takes back or sends comments.
func (o *reviewOptions) comment(ctx context.Context, ref string) error {
	switch {
	case o.message || o.again && !o.send:
		return agency.Errorf(agency.CodeUsage, "--again belongs to --send, and --message stands alone").WithHint("agency review --help")
	case len(o.discard) > 0 && (len(o.comments) > 0 || o.send):
		return agency.Errorf(agency.CodeUsage, "--discard-comment is given together with --comment or --send").WithHint("take comments back first")
	case len(o.discard) > 0:
		return o.discardComments(ctx, ref)
	}
	if len(o.comments) > 0 {
		req := api.AddCommentsRequest{Run: ref, Into: o.into}
		for _, given := range o.comments {
			c, err := parseComment(given)
			if err != nil {
				return err
			}
			req.Comments = append(req.Comments, c)
		}
		resp, err := command.Call(ctx, o.Deps, api.AddComments, req)
		if err != nil {
			return err
		}
		if !o.send {
			return o.Print(resp, func(w io.Writer) {
				writeComments(w, resp.Comments, o.Columns())
				o.Chat("send the comments: agency review %s --send", resp.Run.Ref())
			})
		}
	}
	return o.sendComments(ctx, ref)
}

func (o *reviewOptions) discardComments(ctx context.Context, ref string) error {
	req := api.DiscardCommentsRequest{Run: ref}
	for _, word := range o.discard {
		number, err := strconv.Atoi(word)
		switch {
		case word == "all" && len(o.discard) == 1:
		case err != nil:
			return agency.Errorf(agency.CodeUsage, "%q is not the number of a comment", word).WithHint("agency review %s lists them; or: --discard-comment all", plain.ShellWord(ref))
		default:
			req.Numbers = append(req.Numbers, number)
		}
	}
	resp, err := command.Call(ctx, o.Deps, api.DiscardComments, req)
	if err != nil {
		return err
	}
	return o.Print(resp, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "%s taken back\n", command.Count(len(resp.Comments), "comment"))
	})
}

func (o *reviewOptions) sendComments(ctx context.Context, ref string) error {
	resp, err := command.Call(ctx, o.Deps, api.SendComments, api.SendCommentsRequest{Run: ref, Into: o.into, Again: o.again})
	if err != nil {
		return err
	}
	return o.Print(resp, func(w io.Writer) {
		comments := command.Count(len(resp.Comments), "comment")
		switch {
		case resp.Confirmed:
			_, _ = fmt.Fprintf(w, "%s delivered\n", comments)
		case resp.Composer != "":
			_, _ = fmt.Fprintf(w, "%s delivered, not confirmed: its input box holds: %s\n", comments, term.SafeLine(resp.Composer))
			o.Chat("look: agency attach %s", resp.Run.Ref())
		default:
			_, _ = fmt.Fprintf(w, "%s delivered, not confirmed: nothing shows that the agent took it\n", comments)
		}
	})
}

// commentRule matches FILE:LINE=TEXT or FILE:FIRST-LAST=TEXT, with a minus before the numbers of
// deleted lines. The first match in the text counts.
var commentRule = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?s)^(.+?):(-?)([0-9]+)(?:-([0-9]+))?=(.*)$`) })

// parseComment parses a comment as users type it.
func parseComment(given string) (c api.CommentRequest, err error) {
	parts := commentRule().FindStringSubmatch(given)
	if parts == nil {
		return c, agency.Errorf(agency.CodeUsage, "%q is not a comment: it has no FILE:LINE=", plain.Clip(given)).
			WithHint(`for example: --comment "login.go:12=check the error", or login.go:12-15=... for several lines`)
	}
	c.File, c.Old, c.Text = parts[1], parts[2] != "", parts[5]
	if c.Line, err = strconv.Atoi(parts[3]); err == nil && parts[4] != "" {
		c.Last, err = strconv.Atoi(parts[4])
	}
	if err != nil {
		return c, agency.Errorf(agency.CodeUsage, "%q names no line of a file", plain.Clip(given))
	}
	return c, nil
}

// writeComments prints comments with their numbers and the present places of their lines.
func writeComments(w io.Writer, comments []agency.LineComment, width int) {
	_, _ = fmt.Fprintf(w, "%s\n", command.Count(len(comments), "comment"))
	for i := range comments {
		c := &comments[i]
		line := c.Line
		if c.Now > 0 {
			line = c.Now
		}
		where := fmt.Sprintf("%s:%d", c.File, line)
		if c.Last > c.Line {
			where += fmt.Sprintf("-%d", line+c.Last-c.Line)
		}
		if c.Side == agency.SideOld {
			where += " (deleted)"
		}
		note := ""
		switch c.State {
		case agency.CommentSent:
			note = " (sent)"
		case agency.CommentSending:
			note = " (may have reached the agent)"
		default: // open
		}
		if c.Outdated {
			note += " (the lines changed since)"
		}
		_, _ = fmt.Fprintln(w, term.Hang(fmt.Sprintf("  %d  ", c.Number), term.SafeLine(where+": "+c.Text+note), width))
	}
}
