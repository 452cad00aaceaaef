package tmux

import (
	"context"
	"strings"
)

// Options of agency's sessions that attach sets, because their values depend on the user's keys.
const (
	OptionBack   = "@agency_back"   // the key that switches to the last session, behind the prefix
	OptionAnswer = "@agency_answer" // the tmux command that answers the run, when a key is bound to it
)

// LeaveKey is the one key that leaves a run on agency's own tmux server.
const LeaveKey = "F12"

// nested is true for a client that is itself inside tmux or screen, which takes the first prefix.
const nested = `#{m/r:^(screen|tmux),#{client_termname}}`

// statusLeft is the left part of a status line: what the command prints, and the keys that lead
// out. A client that came from another session goes back there; others leave.
const statusLeft = ` LINE#{?client_last_session, · prefix #{?#{OptionBack},#{OptionBack},L}: back, · LEAVE: leave}#{?#{&&:#{m:*◐*,LINE},#{OptionAnswer}}, · prefix a: answer,} `

// dress returns the tmux commands that give a session its title and its status line.
func (s *Session) dress(target string) []string {
	var args []string
	set := func(words ...string) { args = append(append(args, ";"), words...) }
	if s.Title != "" {
		set("rename-window", "-t", target, literal(s.Title))
	}
	if len(s.Line) == 0 {
		return args
	}
	leave := "#{?" + nested + ",prefix prefix d,prefix d}"
	if s.Own {
		leave = LeaveKey
		set("bind-key", "-n", LeaveKey, "detach-client")
	}
	left := strings.NewReplacer("LINE", job(s.Line), "LEAVE", leave, "OptionBack", OptionBack, "OptionAnswer", OptionAnswer).Replace(statusLeft)
	for _, option := range [][2]string{{"status-left", left}, {"status-left-length", "200"}, {"status-right", ""}, {"status-interval", "2"}} {
		set("set-option", "-t", target, option[0], option[1])
	}
	for _, option := range []string{"window-status-format", "window-status-current-format"} {
		set("set-option", "-w", "-t", target, option, "")
	}
	return args
}

// job returns a tmux format that shows the output of a command, renewed at each status interval
// while a client is attached.
func job(argv []string) string {
	words := make([]string, 0, len(argv))
	for _, arg := range argv {
		words = append(words, "'"+strings.ReplaceAll(arg, "'", `'\''`)+"'")
	}
	// "#" begins a format, "%" a part of the date, and a comma or brace ends a condition.
	return "#(" + strings.NewReplacer("#", "##", "%", "%%", ",", "#,", "}", "#}").Replace(strings.Join(words, " ")) + ")"
}

// dismiss moves clients out of a session that is about to end. Each line of clients has the way out of
// one and its name.
func (t *Tmux) dismiss(ctx context.Context, clients string) {
	for line := range strings.Lines(clients) {
		how, client, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		args := []string{"detach-client", "-t", client}
		if how == "back" {
			args = []string{"switch-client", "-c", client, "-l"}
		}
		_, _ = t.run(ctx, "", args...) // it may have left by itself
	}
}
