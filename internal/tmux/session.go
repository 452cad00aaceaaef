package tmux

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"agency"
)

// Session describes a new session.
type Session struct {
	Name          string   // letters, digits, "_" and "-": tmux would change other characters silently
	Title         string   // the name of its window; empty leaves that to tmux
	Line          []string // a command whose output stands in the status line; empty leaves the user's line
	Own           bool     // the server is agency's alone, so that keys can be bound for all of it
	Dir           string   // absolute path of an existing directory
	Argv          []string // the program and its arguments, run without a shell
	Width, Height int      // in cells
}

// Names that tmux keeps unchanged, and that a target can contain without another meaning.
var nameRule = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]+$`) })

var paneRule = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^%[0-9]+$`) })

// Start creates a detached session with one pane that runs s.Argv, by a single tmux process, and
// returns the id of the pane. The session outlives its clients and the pane outlives its program,
// whatever the user configured; only this session and its window get these options. When
// no server runs, it starts one with Env.
//
// Any failure is E_TMUX_START_FAILED, and leaves no session behind unless tmux did not answer in
// time. A program that cannot be executed is not a failure here: its pane is dead at once.
func (t *Tmux) Start(ctx context.Context, s Session) (pane string, err error) {
	fail := func(format string, args ...any) error {
		return agency.Errorf(agency.CodeTmuxStartFailed, "start tmux session "+format, args...)
	}
	switch {
	case !nameRule().MatchString(s.Name):
		return "", fail("%q: the name holds other characters than letters, digits, _ and -", s.Name)
	case !filepath.IsAbs(s.Dir):
		return "", fail("%s: the directory %q is not an absolute path", s.Name, s.Dir)
	case len(s.Argv) == 0 || s.Argv[0] == "":
		return "", fail("%s: there is no program to run", s.Name)
	}
	// The directory is that of the tmux process and not an argument of -c, which tmux expands as a
	// format: a directory called "#(command)" would be a command, and some names cannot be escaped.
	args := s.making()
	out, err := t.run(ctx, s.Dir, args...)
	for range 5 {
		if !serverExited(err) {
			break
		}
		// The last session of the server has just ended, and the server with it. The next process
		// starts a new one.
		out, err = t.run(ctx, s.Dir, args...)
	}
	pane, _, _ = strings.Cut(out, "\n")
	if err == nil && !paneRule().MatchString(pane) {
		err = fmt.Errorf("tmux answered %q, not a pane id", readable(pane))
	}
	switch {
	case err == nil:
		return pane, nil
	case agency.IsCode(err, agency.CodeTmuxNotFound):
		return "", err
	case paneRule().MatchString(pane):
		// The session exists but not as it must be. One that existed before printed no pane.
		if left := t.Kill(context.WithoutCancel(ctx), s.Name); left != nil && !agency.IsCode(left, agency.CodeTmuxSessionNotFound) {
			err = fmt.Errorf("%w; then %w", err, left)
		}
	}
	return "", fail("%s: %w", s.Name, err)
}

// making returns the commands that make the session and set its options.
func (s *Session) making() []string {
	argv := s.Argv
	if len(argv) == 1 {
		// tmux gives a single argument to the user's shell as a command line, and runs two or more
		// as they are.
		argv = []string{"/bin/sh", "-c", `exec "$0"`, argv[0]}
	}
	args := []string{
		"new-session", "-d", "-P", "-F", "#{pane_id}", "-s", s.Name,
		"-x", strconv.Itoa(s.Width), "-y", strconv.Itoa(s.Height), "--",
	}
	for _, arg := range argv {
		args = append(args, literal(arg))
	}
	// "=name:" is this session and its current window; without the colon the name could be taken
	// for a window's.
	target := "=" + s.Name + ":"
	args = append(args, ";", "set-option", "-t", target, "destroy-unattached", "off")
	args = append(args, ";", "set-option", "-w", "-t", target, "remain-on-exit", "on")
	// tmux writes its note about a dead pane into the last row, and a smaller client then shows the
	// empty rows above it instead of the text at the top. tmux 3.2 always does and does not know
	// the option, hence -q.
	args = append(args, ";", "set-option", "-w", "-q", "-t", target, "remain-on-exit-format", "")
	// The end of a session must not end the terminal of a user who came to it from another one.
	args = append(args, ";", "set-option", "-t", target, "detach-on-destroy", "off")
	return append(args, s.dress(target)...)
}

// Respawn runs a program in a pane of a session whose program has ended. Clients that show the pane
// stay.
func (t *Tmux) Respawn(ctx context.Context, session, pane string, argv []string) error {
	if !nameRule().MatchString(session) || !paneRule().MatchString(pane) || len(argv) < 2 {
		return agency.Errorf(agency.CodeTmuxStartFailed, "start a program in pane %q of the tmux session %q: not such a pane", pane, session)
	}
	// A pane has its id on the whole server: it must still be in this session.
	out, err := t.run(ctx, "", "list-panes", "-s", "-t", "="+session, "-F", "#{pane_id}")
	if err == nil && !slices.Contains(strings.Fields(out), pane) {
		err = fmt.Errorf("it has no pane %s", pane)
	}
	args := []string{"respawn-pane", "-t", pane, "--"}
	for _, arg := range argv {
		args = append(args, literal(arg))
	}
	if err == nil {
		_, err = t.run(ctx, "", args...)
	}
	if err != nil {
		return agency.Errorf(agency.CodeTmuxStartFailed, "start a program in the tmux session %s: %w", session, err)
	}
	return nil
}

// literal escapes an argument that tmux would take for, or cut at, the ";" between two commands.
func literal(arg string) string {
	if rest, ok := strings.CutSuffix(arg, ";"); ok {
		return rest + `\;`
	}
	return arg
}

// Exists reports whether there is a session with exactly that name. Without a server there is none.
func (t *Tmux) Exists(ctx context.Context, name string) (bool, error) {
	all, err := t.list(ctx)
	return slices.ContainsFunc(all, func(s listed) bool { return s.name == name }), err
}

// Runs reports whether a program runs in the session with exactly that name. It is false when there
// is no such session.
func (t *Tmux) Runs(ctx context.Context, name string) (bool, error) {
	if !nameRule().MatchString(name) {
		return false, nil
	}
	out, err := t.run(ctx, "", "list-panes", "-s", "-t", "="+name+":", "-F", "#{pane_dead}")
	if notFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("list the panes of tmux session %s: %w", name, err)
	}
	return slices.Contains(strings.Fields(out), "0"), nil
}

// Kill ends the session with exactly that name, with every window in it. A client in it returns to
// the session that it came from, or is detached. Without such a session the error is
// E_TMUX_SESSION_NOT_FOUND.
func (t *Tmux) Kill(ctx context.Context, name string) error {
	if !nameRule().MatchString(name) {
		return noSession(name)
	}
	if clients, err := t.run(ctx, "", "list-clients", "-t", "="+name, "-F", "#{?client_last_session,back,leave} #{client_name}"); err == nil {
		t.dismiss(ctx, clients)
	}
	_, err := t.run(ctx, "", "kill-session", "-t", "="+name)
	if notFound(err) {
		return noSession(name)
	}
	if err != nil {
		return fmt.Errorf("kill tmux session %s: %w", name, err)
	}
	return nil
}

// Sessions returns the names of agency's own sessions, in the order of tmux; without a server there
// are none.
func (t *Tmux) Sessions(ctx context.Context) ([]string, error) {
	all, err := t.list(ctx)
	names := []string{}
	for _, s := range all {
		if strings.HasPrefix(s.name, agency.SessionPrefix) {
			names = append(names, s.name)
		}
	}
	return names, err
}

// Attached returns how many clients are attached to the session with exactly that name. Without
// such a session the error is E_TMUX_SESSION_NOT_FOUND.
func (t *Tmux) Attached(ctx context.Context, name string) (int, error) {
	all, err := t.list(ctx)
	if err != nil {
		return 0, err
	}
	i := slices.IndexFunc(all, func(s listed) bool { return s.name == name })
	if i < 0 {
		return 0, noSession(name)
	}
	return all[i].clients, nil
}

// Capture returns the visible screen of a pane as plain text with a newline after each row. The
// error is E_TMUX_SESSION_NOT_FOUND when the session with exactly that name has no such pane: a
// restarted server reuses the ids of panes, so the id alone may belong to another pane. The text
// comes from the program: it is untrusted, but without escape sequences.
func (t *Tmux) Capture(ctx context.Context, session, pane string) (string, error) {
	return t.capture(ctx, session, pane)
}

// CaptureStyled is Capture with the escape sequences of the colours.
func (t *Tmux) CaptureStyled(ctx context.Context, session, pane string) (string, error) {
	return t.capture(ctx, session, pane, "-e")
}

// CaptureScreen is CaptureStyled with what tmux knows of the screen: its size, its cursor, and how
// many rows of the text are above it, at most history. It resizes nothing.
func (t *Tmux) CaptureScreen(ctx context.Context, session, pane string, history int) (text string, screen agency.Screen, err error) {
	const format = "#{pane_width} #{pane_height} #{history_size} #{cursor_flag} #{cursor_x} #{cursor_y}"
	options := []string{"-e"}
	if history > 0 {
		options = append(options, "-S", strconv.Itoa(-history))
	}
	out, err := t.captureAfter(ctx, session, pane, format, options...)
	if err != nil {
		return "", screen, err
	}
	line, text, _ := strings.Cut(out, "\n")
	var cursor agency.ScreenCursor
	var above, shown int
	if _, err := fmt.Sscan(line, &screen.Width, &screen.Height, &above, &shown, &cursor.Column, &cursor.Row); err != nil {
		return "", screen, fmt.Errorf("capture tmux pane %s: unknown line %q", pane, readable(line))
	}
	screen.Live, screen.Above = true, min(above, history)
	if shown == 1 {
		screen.Cursor = &cursor
	}
	return text, screen, nil
}

func (t *Tmux) capture(ctx context.Context, session, pane string, options ...string) (string, error) {
	return t.captureAfter(ctx, session, pane, "", options...)
}

// captureAfter captures a pane. If format is not empty, a line with its values comes first.
func (t *Tmux) captureAfter(ctx context.Context, session, pane, format string, options ...string) (string, error) {
	if !nameRule().MatchString(session) {
		return "", noSession(session)
	}
	if !paneRule().MatchString(pane) {
		return "", fmt.Errorf("capture tmux pane %q: not a pane id", pane)
	}
	// "=session:.%1" is pane %1 if it is in a window of that session, otherwise no pane.
	target := "=" + session + ":." + pane
	args := append([]string{"capture-pane", "-p", "-t", target}, options...)
	if format != "" {
		args = slices.Concat([]string{"display-message", "-p", "-t", target, format, ";"}, args)
	}
	out, err := t.run(ctx, "", args...)
	if notFound(err) {
		return "", agency.Errorf(agency.CodeTmuxSessionNotFound, "there is no pane %s in the tmux session %q", pane, session)
	}
	if err != nil {
		return "", fmt.Errorf("capture tmux pane %s: %w", pane, err)
	}
	return out, nil
}

func noSession(name string) error {
	return agency.Errorf(agency.CodeTmuxSessionNotFound, "there is no tmux session %q", name)
}

// listed is one session as tmux lists it.
type listed struct {
	name    string
	clients int
}

// list returns every session of the server, the user's too; without a server it is empty.
func (t *Tmux) list(ctx context.Context) ([]listed, error) {
	out, err := t.run(ctx, "", "list-sessions", "-F", "#{session_attached} #{session_name}")
	if noSessions(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list tmux sessions: %w", err)
	}
	return parseList(out)
}

func parseList(out string) ([]listed, error) {
	var all []listed
	for line := range strings.Lines(out) {
		clients, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		n, err := strconv.Atoi(clients)
		if !ok || err != nil || n < 0 || name == "" {
			return nil, fmt.Errorf("list tmux sessions: unknown line %q", readable(line))
		}
		all = append(all, listed{name: name, clients: n})
	}
	return all, nil
}
