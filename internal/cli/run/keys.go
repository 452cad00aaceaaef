package run

import (
	"context"
	"os/exec"
	"strings"
	"time"

	"agency"
)

// keysTime bounds each tmux process that looks at keys. Without an answer the keys are tmux's own.
const keysTime = 2 * time.Second

// keys are the keys of a tmux server that matter to a user in a run's terminal.
type keys struct {
	prefix string // such as C-b
	back   string // behind the prefix: to the last session; empty when no key leads there
	leave  string // behind the prefix: out of tmux
	answer bool   // "a" behind the prefix answers the run, or is free to do so
}

// answerKey is the key behind the prefix that answers a run. It acts in sessions of agency alone,
// which have the command as an option.
const answerKey = "a"

// The options of a run's session that depend on the user's keys. internal/tmux shows them.
const (
	optionBack   = "@agency_back"
	optionAnswer = "@agency_answer"
)

// readKeys reads what list-keys of a prefix table printed, after a line with the prefix.
func readKeys(out string) keys {
	k := keys{prefix: "C-b", back: "L", leave: "d", answer: true}
	prefix, table, ok := strings.Cut(out, "\n")
	if !ok {
		return k
	}
	k.prefix, k.back, k.leave = prefix, "", ""
	for line := range strings.Lines(table) {
		words := strings.Fields(line) // bind-key [-r] -T prefix KEY COMMAND...
		if len(words) > 1 && words[1] == "-r" {
			words = append(words[:1], words[2:]...)
		}
		if len(words) < 5 {
			continue
		}
		key, command := words[3], strings.Join(words[4:], " ")
		switch {
		case command == "switch-client -l" && (k.back == "" || key == "L"):
			k.back = key
		case command == "detach-client" && (k.leave == "" || key == "d"):
			k.leave = key
		case key == answerKey && !strings.Contains(command, optionAnswer):
			k.answer = false // the user's own
		}
	}
	return k
}

// prepare asks a tmux server for the keys of its user and tells the session of a run of them. The
// command answers the run; it is bound to a key where that key is free.
func prepare(ctx context.Context, tmux, socket string, env []string, id agency.RunID, command []string) keys {
	run := func(args ...string) string {
		ctx, cancel := context.WithTimeout(ctx, keysTime)
		defer cancel()
		cmd := exec.CommandContext(ctx, tmux, append([]string{"-u", "-S", socket}, args...)...)
		cmd.Env, cmd.WaitDelay = env, keysTime
		out, _ := cmd.Output()
		return string(out)
	}
	k := readKeys(run("show-options", "-gv", "prefix", ";", "list-keys", "-T", "prefix"))
	session := "=" + agency.SessionPrefix + string(id) + ":"
	set := []string{"set-option", "-t", session, optionBack, k.back}
	if k.answer {
		quoted := make([]string, 0, len(command))
		for _, word := range command {
			quoted = append(quoted, "'"+strings.ReplaceAll(word, "'", `'\''`)+"'")
		}
		popup := "display-popup -EE -w 80% -h 60% " + tmuxQuote(strings.Join(quoted, " "))
		set = append(set, ";", "set-option", "-t", session, optionAnswer, popup,
			";", "bind-key", answerKey, "if-shell", "-F", "#{"+optionAnswer+"}", "run-shell -C '#{"+optionAnswer+"}'")
	}
	run(set...)
	return k
}

// tmuxQuote quotes a word for tmux's parser of commands, which also reads "$" and "#" in it.
func tmuxQuote(word string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`).Replace(word) + `"`
}
