package run

import (
	"context"
	"os/exec"
	"strings"
	"time"

	"agency"
)

// keysTime limits each tmux process that looks at keys. Without an answer, tmux's default keys are
// assumed.
const keysTime = 2 * time.Second

// keys are the keys of a tmux server that matter to a user in a run's terminal.
type keys struct {
	prefix string // such as C-b
	back   string // after the prefix: to the last session; empty when no key does that
	leave  string // after the prefix: out of tmux
	answer bool   // "a" after the prefix answers the run, or is free for that
}

// answerKey is the key after the prefix that answers a run. It has an effect only in sessions of
// agency, which have the command as an option.
const answerKey = "a"

// The options of a run's session that depend on the user's keys. Package tmux shows them.
const (
	optionBack   = "@agency_back"
	optionAnswer = "@agency_answer"
)

// readKeys reads the output of list-keys for a prefix table, after a line with the prefix.
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

// prepare asks a tmux server for the keys of its user, and stores them in the session of a run.
// command answers the run; prepare binds it to a key if that key is free.
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
