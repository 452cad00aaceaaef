package crash_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// conversations are the operations on an agent that is spoken to in its own protocol. Its wrapper is
// replaced when it is killed.
func conversations() []operation {
	said := []string{"speech.intended", "speech.written", "speech.kept"}
	return slices.Concat(refusals(), []operation{
		{
			name:    "run in its protocol",
			points:  said,
			repo:    useProtocol,
			command: []string{"run", "--mode", "protocol", "--runner", "claude_code", "--name", "target", "--prompt", "make it"},
			done:    isRunning,
		},
		{
			name:    "answer in its protocol",
			points:  said,
			repo:    useProtocol,
			prepare: speakTarget,
			command: []string{"answer", "target", "allow"},
			done:    isAnswered,
		},
		{
			name:    "rotation of a conversation",
			points:  []string{"speech.archived", "speech.checkpointed", "speech.freed"},
			repo:    func(w *world) { useProtocol(w); alsoWhole(w) },
			command: []string{"run", "--mode", "protocol", "--runner", "claude_code", "--name", "target", "--prompt", "flood it"},
			done:    isRunning,
		},
		{
			name:    "another wrapper",
			points:  []string{"replace.begun"},
			repo:    useProtocol,
			prepare: speakTarget,
			trigger: func(w *world) { w.kill(w.wrapper(w.target().ID)) },
			done:    isRunning,
		},
		{
			name: "another mode",
			points: join([]string{"stop.intended", "stop.delivered", "stop.ended", "stop.session", "resume.saved", "resume.begun", "resume.token"},
				steps("resume", "archive", "files"), starting, []string{"resume.session.made"}, steps("resume", "started")),
			repo:    useModes,
			prepare: restTarget,
			command: []string{"mode", "target", "terminal", "--when", "now"},
			done:    func(r *runView) bool { return r.State == "running" && r.Attempt == 2 && r.Mode == "terminal" },
		},
	})
}

// refusals are what an agent in its own protocol and a sandbox does with its network.
func refusals() []operation {
	if _, err := exec.LookPath("bwrap"); err != nil {
		return nil
	}
	return []operation{{
		name:   "refusal in its protocol",
		points: []string{"network.kept"},
		repo: func(w *world) {
			agent, err := filepath.Abs("../agent/acp.sh")
			if err != nil {
				w.t.Fatal(err)
			}
			w.configure(fmt.Sprintf("[sandbox]\nread = [%q]\n[runners.custom.goose]\nexec = \"sh\"\ndefault_args = [%q]\nprotocol = \"acp\"\n", agent, agent))
		},
		prepare: func(w *world) {
			w.must("run", "--runner", "goose", "--sandbox", "process", "--network", "allow", "--name", "target", "--prompt", "make it")
			w.must("wait", "target", "--for", "needs-input", "--timeout", "60s")
			w.must("answer", "target", "allow")
			w.must("wait", "target", "--for", "waiting", "--timeout", "60s")
			if err := os.WriteFile(filepath.Join(w.target().Worktree, "work.txt"), []byte("precious\n"), 0o600); err != nil {
				w.t.Fatal(err)
			}
			w.also = w.countsRefusals
		},
		command: []string{"send", "target", "fetch a.example"},
		done:    isRunning,
	}}
}

// countsRefusals says so when the live agent of the target was refused a host, and the record does
// not know it.
func (w *world) countsRefusals() []string {
	target := w.target()
	if target == nil || target.State != "running" || target.RemovedAt != nil || !slices.ContainsFunc(heardBy(target), func(line string) bool { return strings.HasPrefix(line, "fetched a.example") }) {
		return nil
	}
	if shown := w.must("show", "target"); !strings.Contains(shown, "--host a.example") {
		return []string{"the record does not have what the agent was refused: " + shown}
	}
	return nil
}

// useProtocol configures a scripted Claude Code.
func useProtocol(w *world) { speakWith(w, scriptedClaude(w)) }

// useModes is useProtocol with an agent that waits for input when it has a terminal.
func useModes(w *world) {
	w.script("claude.sh", `#!/bin/sh
case " $* " in
*" --input-format stream-json "*) exec "`+scriptedClaude(w)+`" "$@" ;;
*) exec cat ;;
esac
`)
	speakWith(w, w.path("claude.sh"))
}

func scriptedClaude(w *world) string {
	agent, err := filepath.Abs("../agent/claude.sh")
	if err != nil {
		w.t.Fatal(err)
	}
	return agent
}

// speakWith configures a program as Claude Code. It is a violation when it hears anything twice.
func speakWith(w *world, agent string) {
	w.configure(fmt.Sprintf("[runners.claude_code]\nexec = %q\n", agent))
	w.also = func() []string {
		target := w.target()
		if target == nil {
			return nil
		}
		heard := heardBy(target)
		slices.Sort(heard)
		if once := slices.Compact(slices.Clone(heard)); len(once) != len(heard) {
			return []string{"the agent heard something twice: " + strings.Join(heard, ", ")}
		}
		return nil
	}
}

// alsoWhole makes it a violation when something is missing, or there twice, of what the scripted Claude
// Code said before it asked.
func alsoWhole(w *world) {
	also := w.also
	w.also = func() []string {
		wrong := also()
		if target := w.target(); target != nil && target.RemovedAt == nil {
			wire := w.f.Agency("logs", "--wire", "target").Stdout
			if n := strings.Count(wire, `"keep_alive"`); strings.Contains(wire, `"asks-`) && n != 100_000 {
				wrong = append(wrong, fmt.Sprintf("the agent said 100000 lines, and %d are there", n))
			}
		}
		return wrong
	}
}

func speakTarget(w *world) {
	w.must("run", "--mode", "protocol", "--runner", "claude_code", "--name", "target", "--prompt", "make it")
	w.must("wait", "target", "--for", "needs-input", "--timeout", "60s")
}

// restTarget leaves an agent at rest after its first turn.
func restTarget(w *world) {
	speakTarget(w)
	w.must("answer", "target", "allow")
	w.must("wait", "target", "--for", "waiting", "--timeout", "60s")
}

// heardBy returns the messages and answers that the scripted Claude Code of a run took.
func heardBy(r *runView) []string {
	data, _ := os.ReadFile(filepath.Join(r.Worktree, "heard.txt"))
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

func isAnswered(r *runView) bool {
	return r.State == "running" && slices.ContainsFunc(heardBy(r), func(line string) bool { return strings.HasPrefix(line, "answer ") })
}

// inWrapper reports whether a point is one of the wrapper, and not of the daemon or a client.
func inWrapper(point string) bool {
	return strings.HasPrefix(point, "wrapper.") || strings.HasPrefix(point, "speech.") || strings.HasPrefix(point, "network.")
}
