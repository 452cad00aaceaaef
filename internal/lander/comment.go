package lander

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"agency"
	"agency/internal/file"
	"agency/internal/killpoint"
	"agency/internal/plain"
)

// Limits of what is read and quoted for comments.
const (
	fileLimit  = 8 << 20 // bytes of a file
	quoteLines = 5
	quoteWidth = 200 // characters of a line
)

// Remark is a comment as the user gives it, on lines of a file of the diff; the first line is 1.
type Remark struct {
	File       string
	Line, Last int  // 0 means Line
	Old        bool // lines that the run deleted, with their numbers before that
	Text       string
}

// Add records comments on the work of a run as it is now. E_INVALID_PATH: the diff has no such
// file, or the file no such lines.
func (cs *Comments) Add(ctx context.Context, req Request, remarks []Remark) ([]agency.LineComment, *agency.Run, error) {
	r, repo, p, err := cs.look(ctx, req)
	if err != nil {
		return nil, nil, err
	}
	d, err := cs.lines(ctx, repo, p)
	if err != nil {
		return nil, nil, err
	}
	have, err := cs.Store.Comments(ctx, r.ID)
	if err != nil {
		return nil, nil, err
	}
	have = slices.DeleteFunc(have, func(c agency.LineComment) bool { return c.State == agency.CommentSent })
	if n := len(have) + len(remarks); n > agency.CommentsLimit {
		return nil, nil, agency.Errorf(agency.CodeInvalidState, "%s would have %d comments that its agent does not have, more than %d", r.Ref(), n, agency.CommentsLimit).
			WithHint("send those first: agency review %s --send", r.Ref())
	}
	comments := make([]agency.LineComment, 0, len(remarks))
	for i := range remarks {
		c, err := d.comment(ctx, r, &remarks[i])
		if err != nil {
			return nil, nil, err
		}
		comments = append(comments, *c)
	}
	if err := cs.Store.AddComments(ctx, r.ID, comments); err != nil {
		return nil, nil, err
	}
	return comments, r, cs.locate(ctx, repo, p, comments)
}

// Discard takes back comments that the agent did not get yet. Without numbers it takes back all of
// these.
func (cs *Comments) Discard(ctx context.Context, ref string, numbers []int) ([]agency.LineComment, *agency.Run, error) {
	r, err := cs.Runs.Resolve(ctx, ref)
	if err != nil {
		return nil, nil, err
	}
	unlock, err := cs.sending.Lock(ctx, string(r.ID))
	if err != nil {
		return nil, nil, err
	}
	defer unlock()
	all, err := cs.Store.Comments(ctx, r.ID)
	if err != nil {
		return nil, nil, err
	}
	asked := numbers
	if len(asked) == 0 {
		asked = numbersOf(all)
	}
	for _, n := range numbers {
		at := slices.IndexFunc(all, func(c agency.LineComment) bool { return c.Number == n })
		if at < 0 || all[at].State == agency.CommentSent {
			why := "there is no comment %d on %s"
			if at >= 0 {
				why = "the agent has the comment %d on %s already"
			}
			return nil, nil, agency.Errorf(agency.CodeInvalidState, why, n, r.Ref()).WithHint("its comments: agency review %s", r.Ref())
		}
	}
	gone, err := cs.Store.MoveComments(ctx, r.ID, asked, []agency.CommentState{agency.CommentOpen, agency.CommentSending}, agency.CommentDiscarded)
	return gone, r, err
}

// Deliver sends all comments that the agent of a run did not get yet, as one message. A comment
// whose sending was interrupted is sent again only with again: the agent may have it. Comments
// count as sent when agency saw the agent take the message, or when nothing could show whether it
// did.
func (cs *Comments) Deliver(ctx context.Context, req Request, again bool) ([]agency.LineComment, *agency.Run, agency.Delivery, error) {
	fail := func(err error) ([]agency.LineComment, *agency.Run, agency.Delivery, error) {
		return nil, nil, agency.Delivery{}, err
	}
	r, err := cs.Runs.Resolve(ctx, req.Ref)
	if err != nil {
		return fail(err)
	}
	unlock, err := cs.sending.Lock(ctx, string(r.ID))
	if err != nil {
		return fail(err)
	}
	defer unlock()
	comments, err := cs.located(ctx, r, req)
	if err != nil {
		return fail(err)
	}
	unknown := numbersOf(slices.DeleteFunc(slices.Clone(comments), func(c agency.LineComment) bool { return c.State != agency.CommentSending }))
	if len(unknown) > 0 && !again {
		return fail(agency.Errorf(agency.CodeInvalidState, "%s of %s may have reached the agent: sending was cut off", count(len(unknown), "comment"), r.Ref()).
			WithDetail("comments", unknown).
			WithHint("look: agency attach %s; if they are not there: agency review %s --send --again; if they are: agency review %s --discard-comment NUMBER", r.Ref(), r.Ref(), r.Ref()))
	}
	comments = slices.DeleteFunc(comments, func(c agency.LineComment) bool { return c.State == agency.CommentSent })
	if len(comments) == 0 {
		return fail(agency.Errorf(agency.CodeInvalidState, "%s has no comments to send", r.Ref()).
			WithHint(`make one: agency review %s --comment "FILE:LINE=TEXT"`, r.Ref()))
	}
	if r.RemovedAt == nil && r.Attempt.State != agency.Running {
		return fail(agency.Errorf(agency.CodeInvalidState, "the agent of %s is not running, so it would not read the comments", r.Ref()).
			WithHint(`give them to it as a new task: agency resume %s --prompt "$(agency review %s --message)"`, r.Ref(), r.Ref()))
	}
	numbers := numbersOf(comments)
	moved, err := cs.Store.MoveComments(ctx, r.ID, numbers, []agency.CommentState{agency.CommentOpen}, agency.CommentSending)
	if err != nil {
		return fail(err)
	}
	killpoint.At("comments.sending")
	delivery, err := cs.Send(ctx, r.ID, CommentMessage(comments))
	killpoint.At("comments.delivered")
	ctx = context.WithoutCancel(ctx)
	sending := []agency.CommentState{agency.CommentSending}
	switch {
	case err != nil && agency.MayHaveTyped(err):
		return fail(err)
	case err != nil: // an earlier message may still have brought the others
		_, failed := cs.Store.MoveComments(ctx, r.ID, numbersOf(moved), sending, agency.CommentOpen)
		return fail(errors.Join(err, failed))
	case delivery.Effect == agency.EffectComposer:
		return comments, r, delivery, nil // still in the input box, as the answer shows
	}
	sent, err := cs.Store.MoveComments(ctx, r.ID, numbers, sending, agency.CommentSent)
	return sent, r, delivery, err
}

// located returns the comments on the work of a run, with the present places of their lines.
func (cs *Comments) located(ctx context.Context, r *agency.Run, req Request) ([]agency.LineComment, error) {
	comments, err := cs.Store.Comments(ctx, r.ID)
	if err != nil || len(comments) == 0 {
		return comments, err
	}
	_, repo, p, err := cs.look(ctx, req)
	if err != nil {
		return comments, nil //nolint:nilerr // the lines have no place then, which a review shows
	}
	return comments, cs.locate(ctx, repo, p, comments)
}

// look reads what a run would land. It takes no locks.
func (cs *Comments) look(ctx context.Context, req Request) (*agency.Run, agency.Repo, *plan, error) {
	r, err := cs.Runs.Resolve(ctx, req.Ref)
	if err != nil {
		return nil, agency.Repo{}, nil, err
	}
	repo, err := cs.Repos.Of(ctx, r)
	if err != nil {
		return nil, repo, nil, err
	}
	p, err := cs.plan(ctx, r, repo, req.Asked)
	return r, repo, p, err
}

// lines reads the files of a run's work.
type lines struct {
	planner   *planner
	repo      agency.Repo
	base, now string // commits
	tree      string
	changes   []agency.FileChange
	read      map[string][]string // by side and file
}

// lines returns the files in which a run changed something since it left the target, or since its
// last landing.
func (pl *planner) lines(ctx context.Context, repo agency.Repo, p *plan) (*lines, error) {
	d := &lines{planner: pl, repo: repo, now: p.source.sealed, read: map[string][]string{}}
	var err error
	if d.base, err = pl.begin(ctx, repo, p); err != nil {
		return nil, err
	}
	if d.tree, err = pl.Git.Tree(ctx, repo, d.now); err != nil {
		return nil, err
	}
	d.changes, err = pl.Git.Changes(ctx, repo, d.base, d.now)
	return d, err
}

// begin returns the commit at which the work begins that is still to land: where it left the
// target, or the source of the landing before.
func (pl *planner) begin(ctx context.Context, repo agency.Repo, p *plan) (string, error) {
	if p.base != "" {
		return p.base, nil
	}
	bases, err := pl.Git.Bases(ctx, repo, p.targetOld, p.source.sealed)
	if err != nil || len(bases) == 0 {
		return p.targetOld, err
	}
	return bases[0], nil
}

// Begin returns the commit at which that work of a run begins which would land in a branch.
func (cs *Comments) Begin(ctx context.Context, req Request) (string, error) {
	r, err := cs.Runs.Resolve(ctx, req.Ref)
	if err != nil {
		return "", err
	}
	repo, err := cs.Repos.Of(ctx, r)
	if err != nil {
		return "", err
	}
	p, err := cs.planWith(ctx, r, repo, req.Asked, cs.committed)
	if err != nil {
		return "", err
	}
	return cs.begin(ctx, repo, p)
}

// comment returns a remark as a comment on lines that exist.
func (d *lines) comment(ctx context.Context, r *agency.Run, m *Remark) (*agency.LineComment, error) {
	c := &agency.LineComment{File: m.File, Side: agency.SideNew, Line: m.Line, Last: max(m.Last, m.Line), Text: strings.TrimSpace(m.Text), Revision: d.tree}
	if err := checkComment(m); err != nil {
		return nil, err
	}
	change, err := d.find(r, m.File)
	if err != nil {
		return nil, err
	}
	if c.File = change.Path; change.Status == "D" || m.Old {
		c.Side = agency.SideOld
	}
	if m.Old && change.Status == "A" {
		return nil, agency.Errorf(agency.CodeInvalidPath, "%s is new, so no line of it was deleted", plain.Visible(c.File)).WithHint("look: agency diff %s", r.Ref())
	}
	all, err := d.of(ctx, c.Side, c.File)
	if err != nil {
		return nil, agency.Errorf(agency.CodeInvalidPath, "%s has no lines to comment on: %w", plain.Visible(c.File), err)
	}
	if c.Last > len(all) {
		return nil, agency.Errorf(agency.CodeInvalidPath, "%s has %s, so there is no line %d", plain.Visible(c.File), count(len(all), "line"), c.Last).
			WithHint("look: agency diff %s; on a line that was deleted: --comment %s", r.Ref(), plain.ShellWord(fmt.Sprintf("%s:-%d=TEXT", plain.Visible(c.File), c.Line)))
	}
	part := all[c.Line-1 : c.Last]
	c.Hash, c.Quote = hashOf(part), quote(part)
	if m.Old && change.Status != "D" {
		return c, d.checkDeleted(ctx, c)
	}
	return c, nil
}

// checkDeleted refuses a comment on deleted lines that are still in the file.
func (d *lines) checkDeleted(ctx context.Context, c *agency.LineComment) error {
	all, err := d.of(ctx, agency.SideNew, c.File)
	if errors.Is(err, errNoLines) || errors.Is(err, errBinary) {
		return nil
	}
	if now := find(all, c); err == nil && now > 0 {
		return agency.Errorf(agency.CodeInvalidPath, "line %d of %s was not deleted: it is line %d now", c.Line, plain.Visible(c.File), now).
			WithHint("comment on it as it is: --comment %s", plain.ShellWord(fmt.Sprintf("%s:%d=TEXT", plain.Visible(c.File), now)))
	}
	return err
}

// find returns the file of the diff that the user means: by its path, or by its path as it is
// shown.
func (d *lines) find(r *agency.Run, path string) (agency.FileChange, error) {
	shown := make([]string, 0, len(d.changes))
	for _, c := range d.changes {
		if c.Path == path || plain.Visible(c.Path) == path {
			return c, nil
		}
		shown = append(shown, plain.Visible(c.Path))
	}
	err := agency.Errorf(agency.CodeInvalidPath, "%s is not among the files that %s changed", plain.Visible(path), r.Ref())
	if near := plain.Nearest(path, shown); near != "" {
		return agency.FileChange{}, err.WithHint("did you mean %s?", near)
	}
	return agency.FileChange{}, err.WithHint("its files: agency review %s", r.Ref())
}

// checkComment refuses a comment that cannot be typed into the agent's terminal.
func checkComment(m *Remark) error {
	switch text := strings.TrimSpace(m.Text); {
	case m.Line < 1 || m.Last != 0 && m.Last < m.Line:
		return agency.Errorf(agency.CodeUsage, "%d-%d are not lines of a file: the first line is 1", m.Line, m.Last)
	case text == "":
		return agency.Errorf(agency.CodeUsage, "the comment on %s has no text", plain.Visible(m.File))
	case len(text) > agency.CommentLimit:
		return agency.Errorf(agency.CodeUsage, "the comment on %s has %d bytes, more than %d", plain.Visible(m.File), len(text), agency.CommentLimit)
	case !utf8.ValidString(text):
		return agency.Errorf(agency.CodeUsage, "the comment on %s is not valid UTF-8", plain.Visible(m.File))
	default:
		for _, c := range text {
			if unicode.IsControl(c) && c != '\n' && c != '\t' {
				return agency.Errorf(agency.CodeUsage, "the comment on %s holds the control character %U", plain.Visible(m.File), c)
			}
		}
	}
	return nil
}

// of returns the lines of a file on one side of the diff.
func (d *lines) of(ctx context.Context, side, path string) ([]string, error) {
	key := side + ":" + path
	if known, ok := d.read[key]; ok {
		return known, nil
	}
	commit := d.now
	if side == agency.SideOld {
		commit = d.base
	}
	data, found, err := d.planner.Git.File(ctx, d.repo, commit, path, fileLimit)
	switch {
	case err != nil:
		return nil, err
	case !found:
		return nil, errNoLines
	case bytes.IndexByte(data, 0) >= 0:
		return nil, errBinary
	}
	all := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	if len(data) == 0 {
		all = nil
	}
	d.read[key] = all
	return all, nil
}

// Why a file has no lines.
var (
	errNoLines = errors.New("it is not a file there")
	errBinary  = errors.New("it is binary")
)

// locate finds the lines of comments in the present work: where they were, or at the only other
// place with the same lines.
func (pl *planner) locate(ctx context.Context, repo agency.Repo, p *plan, comments []agency.LineComment) error {
	d, err := pl.lines(ctx, repo, p)
	if err != nil {
		return err
	}
	for i := range comments {
		c := &comments[i]
		all, err := d.of(ctx, c.Side, c.File)
		gone := errors.Is(err, errNoLines) || errors.Is(err, errBinary) || errors.Is(err, file.ErrNotRegular) || errors.Is(err, file.ErrTooLarge)
		if err != nil && !gone {
			return err
		}
		c.Now = find(all, c)
		c.Outdated = c.Now == 0
	}
	return nil
}

// find returns the line at which the lines of a comment begin, or 0.
func find(all []string, c *agency.LineComment) int {
	n := c.Last - c.Line + 1
	at := func(line int) bool { return line+n-1 <= len(all) && hashOf(all[line-1:line+n-1]) == c.Hash }
	if at(c.Line) {
		return c.Line
	}
	found := 0
	for line := 1; line+n-1 <= len(all); line++ {
		if at(line) && found > 0 {
			return 0 // there are several
		} else if at(line) {
			found = line
		}
	}
	return found
}

func hashOf(part []string) string {
	sum := sha256.Sum256([]byte(strings.Join(part, "\n")))
	return hex.EncodeToString(sum[:])
}

// quote returns the beginning of lines, safe for a terminal.
func quote(part []string) string {
	shown := make([]string, 0, quoteLines+1)
	for _, line := range part[:min(len(part), quoteLines)] {
		line = plain.Visible(strings.TrimRight(line, "\r"))
		if cut := []rune(line); len(cut) > quoteWidth {
			line = string(cut[:quoteWidth]) + "…"
		}
		shown = append(shown, line)
	}
	if len(part) > quoteLines {
		shown = append(shown, "…")
	}
	return strings.Join(shown, "\n")
}

// CommentMessage returns comments as one message to the agent.
func CommentMessage(comments []agency.LineComment) string {
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, "Review of your work, %s:\n", count(len(comments), "comment"))
	for i := range comments {
		c := &comments[i]
		where, note := c.Now, ""
		if where == 0 {
			where = c.Line
		}
		span := fmt.Sprint(where)
		if c.Last > c.Line {
			span = fmt.Sprintf("%d-%d", where, where+c.Last-c.Line)
		}
		if c.Outdated {
			note = " (changed since)"
		}
		if c.Side == agency.SideOld {
			note += " (deleted)"
		}
		_, _ = fmt.Fprintf(&b, "\n%s:%s%s\n", plain.OneLine(plain.Visible(c.File)), span, note)
		for line := range strings.SplitSeq(c.Quote, "\n") {
			_, _ = fmt.Fprintf(&b, "> %s\n", line)
		}
		b.WriteString(c.Text + "\n")
	}
	b.WriteString("\nAddress each of them, commit, and report again.")
	return b.String()
}

func numbersOf(comments []agency.LineComment) []int {
	numbers := make([]int, 0, len(comments))
	for i := range comments {
		numbers = append(numbers, comments[i].Number)
	}
	return numbers
}
