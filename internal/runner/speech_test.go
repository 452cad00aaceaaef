package runner_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"agency"
	"agency/internal/protocol"
	"agency/internal/runner"
)

// wordsDialect is a protocol of words: KIND ID TEXT.
var wordsDialect = protocol.Dialect{
	Name:  "words",
	Hello: func(_ protocol.Place, id string) []byte { return []byte("hello " + id + "\n") },
	Message: func(_ protocol.Place, id, text string, _ []string) []byte {
		return []byte("message " + id + " " + text + "\n")
	},
	Interrupt: func(_ protocol.Place, id string) []byte { return []byte("interrupt " + id + "\n") },
	Look:      func(_ protocol.Place, id string) []byte { return []byte("look " + id + "\n") },
	Refuse:    func(id, name string) []byte { return []byte("unknown " + id + " " + name + "\n") },
	Answer: func(r *protocol.Request, reply agency.Reply) ([]byte, error) {
		return fmt.Appendf(nil, "answer %s %s\n", r.ID, reply.Decision), nil
	},
	Guests: &wordsGuests,
	Read: func(line []byte) []protocol.Event {
		word, id, _ := strings.Cut(string(line), " ")
		switch word {
		case "hello":
			return []protocol.Event{{Kind: protocol.Session, Greeting: []byte(`"words"`)}, {Kind: protocol.Replied, ID: id}}
		case "refused":
			return []protocol.Event{{Kind: protocol.Replied, ID: id, Failed: true, Text: "no such conversation"}}
		case "begun":
			return []protocol.Event{{Kind: protocol.Begun, ID: id, Turn: "t1"}}
		case "asks":
			return []protocol.Event{{Kind: protocol.Asked, ID: id, Request: &protocol.Request{ID: id, Kind: agency.AsksPermission, Tool: "rm"}}}
		case "answered":
			return []protocol.Event{{Kind: protocol.Answered, ID: id}}
		case "wants":
			return []protocol.Event{{Kind: protocol.Foreign, ID: id, Name: "wants"}}
		case "used":
			return []protocol.Event{{Kind: protocol.Used, ID: id, Usage: &agency.Usage{}, Add: true}}
		case "says":
			return []protocol.Event{{Kind: protocol.Message, Text: id}}
		}
		return []protocol.Event{{Kind: protocol.Unknown, Name: word}}
	},
}

// wordsSpeaker keeps the evidence in a file, one line for each piece: its offset and its signal.
func wordsSpeaker(launch *agency.Launch) *runner.Speaker {
	path := filepath.Join(launch.AttemptDir, "evidence")
	return &runner.Speaker{
		Dialect: &wordsDialect,
		Keep: func(evidence []agency.Evidence) {
			f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			for i := range evidence {
				if err == nil {
					_, err = fmt.Fprintln(f, evidence[i].Offset, evidence[i].Signal)
				}
			}
			if err != nil {
				panic(err)
			}
			_ = f.Close()
		},
		Kept: func() (most int64) {
			data, _ := os.ReadFile(path)
			last := strings.LastIndexByte(strings.TrimSuffix(string(data), "\n"), '\n') + 1
			_, _ = fmt.Sscan(string(data[last:]), &most)
			return most
		},
	}
}

// wordsAgent greets, begins with each message once, asks after it, and ends with 3 after an answer.
const wordsAgent = `
while read -r kind id text; do
	echo "$kind $id $text" >>heard
	case $kind in
	hello|look) echo "hello $id" ;;
	message) grep -q "^$id$" done 2>/dev/null || { echo "$id" >>done; echo "begun $id"; echo "says on it"; echo "asks r1"; } ;;
	answer) echo "answered $id"; [ -e stay ] || exit 3 ;;
	esac
	while [ -e pause ]; do sleep 0.01; done
done`

// speaks returns an attempt in the mode protocol.
func speaks(t *testing.T) *fixture {
	t.Helper()
	f := prepare(t, wordsAgent)
	f.launch.Mode, f.launch.Opening = agency.ModeProtocol, "begin"
	return f
}

// die kills the wrapper, and returns one that adopts the agent, which is not started yet. An agent can
// be at work before its start is recorded, and without that record it cannot be adopted.
func (f *fixture) die() *fixture {
	f.t.Helper()
	f.started()
	f.signal(unix.SIGKILL)
	f.wait()
	next := *f
	next.done, next.shown = make(chan struct{}), &screen{}
	return &next
}

// adopt starts the next wrapper.
func (f *fixture) adopt() {
	f.t.Helper()
	f.cmd = exec.Command(os.Args[0], "wrapper", filepath.Join(f.launch.AttemptDir, runner.AdoptFile))
	f.cmd.Stdout = f.shown
	if err := f.cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	go func() {
		defer close(f.done)
		_ = f.cmd.Wait()
		f.code = f.cmd.ProcessState.ExitCode()
	}()
	f.t.Cleanup(func() {
		_ = f.cmd.Process.Signal(unix.SIGTERM)
		<-f.done
	})
}

func allow(id string) agency.Saying {
	return agency.Saying{Kind: agency.SaysAnswer, ID: id, Decision: agency.Allow, By: "user"}
}

// A wrapper that is killed is replaced by one that takes over the living agent, and says again
// what may not have been written, once.
func TestAdopt(t *testing.T) {
	t.Parallel()
	f := speaks(t)
	daemon := f.listen(0)
	f.beginOn(f.shown)
	receive(t, "the first link", daemon.links)
	eventually(t, "the request", func() bool { return strings.Contains(f.log("runner"), "id r1\n") })
	first := f.started()
	f = f.die()
	f.adopt()
	link := receive(t, "the second link", daemon.links)
	if got, err := link.Say(t.Context(), allow("r1")); err != nil || !got.Confirmed || got.Effect != agency.EffectTaken {
		t.Errorf("got %+v, %v", got, err)
	}
	exit := f.exit()
	if exit.ExitCode != 3 || exit.EndedBy != agency.EndedByRunner || exit.PID != first.Runner.PID {
		t.Errorf("got %+v", exit)
	}
	f.wait()
	if got := f.raw("heard"); strings.Count(got, "message ") != 1 || strings.Count(got, "answer r1 allow") != 1 || strings.Count(got, "hello agency-hello") != 1 {
		t.Errorf("the agent heard:\n%s", got)
	}
	evidence, err := os.ReadFile(filepath.Join(f.launch.AttemptDir, "evidence"))
	if err != nil || strings.Count(string(evidence), "asked") != 1 || strings.Count(string(evidence), "answered") != 1 {
		t.Errorf("evidence:\n%s%v", evidence, err)
	}
	if log := f.log("runner"); strings.Count(log, "? 1: may it use rm?") != 1 || !strings.Contains(log, "> request 1: allow") || !strings.HasPrefix(f.shown.String(), log) {
		t.Errorf("log:\n%s\npane:\n%s", log, f.shown)
	}
}

// An answer that comes late is told who was faster, also by the next wrapper.
func TestLateAnswer(t *testing.T) {
	t.Parallel()
	f := speaks(t)
	if err := os.WriteFile(filepath.Join(f.dir, "stay"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	daemon := f.listen(0)
	f.beginOn(f.shown)
	link := receive(t, "the link", daemon.links)
	eventually(t, "the request", func() bool { return strings.Contains(f.log("runner"), "id r1\n") })
	if _, err := link.Say(t.Context(), allow("r1")); err != nil {
		t.Fatal(err)
	}
	f = f.die()
	f.adopt()
	link = receive(t, "the second link", daemon.links)
	_, err := link.Say(t.Context(), allow("r1"))
	if agency.AsError(err).Code != agency.CodeInvalidState || !strings.Contains(err.Error(), "answered by user") {
		t.Errorf("got %v", err)
	}
	if err := link.Stop(t.Context(), agency.EndedByStop); err != nil {
		t.Error(err)
	}
	if exit := f.exit(); exit.EndedBy != agency.EndedByStop {
		t.Errorf("got %+v", exit)
	}
	gone(t, f.started().Runner.PID)
}

// What an earlier wrapper recorded and may not have written is written by the next one, and the agent
// hears it once.
func TestUnwritten(t *testing.T) {
	t.Parallel()
	f := speaks(t)
	if err := os.WriteFile(filepath.Join(f.dir, "stay"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f.listen(0)
	f.beginOn(f.shown)
	eventually(t, "the request", func() bool { return strings.Contains(f.log("runner"), "id r1\n") })
	f = f.die()
	wire, err := os.Stat(filepath.Join(f.launch.AttemptDir, protocol.WireFile))
	if err != nil {
		t.Fatal(err)
	}
	var lines []byte
	for _, i := range []protocol.Intent{
		{Saying: agency.Saying{Kind: agency.SaysMessage, ID: "m2", Text: "more", By: "user"}, Frame: "message m2 more\n", Wire: wire.Size()},
		{Saying: allow("r1"), Frame: "answer r1 allow\n", Wire: wire.Size()},
		{Saying: agency.Saying{Kind: agency.SaysInterrupt, ID: "i1", By: "user"}, Frame: "interrupt i1\n", Wire: wire.Size()},
	} {
		line, err := json.Marshal(i)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(append(lines, line...), '\n')
	}
	file, err := os.OpenFile(filepath.Join(f.launch.AttemptDir, protocol.IntentFile), os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = file.Write(append(lines, `{"torn`...))
	}
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	f.adopt()
	eventually(t, "the answer", func() bool { return strings.Contains(f.log("runner"), "request 1 taken\n") })
	f = f.die()
	f.adopt()
	eventually(t, "the same on the pane", func() bool { return strings.Contains(f.shown.String(), "request 1 taken") })
	heard := f.raw("heard")
	for want, times := range map[string]int{"message m2 more": 1, "answer r1 allow": 1, "interrupt i1": 0, "torn": 0} {
		if strings.Count(heard, want) != times {
			t.Errorf("the agent heard %q %d times, want %d:\n%s", want, strings.Count(heard, want), times, heard)
		}
	}
}

// A request that agency does not know is refused once, also when the wrapper was killed before.
func TestForeignRequest(t *testing.T) {
	t.Parallel()
	f := prepare(t, `
		while read -r kind id text; do
			echo "$kind $id $text" >>heard
			case $kind in
			hello|look) echo "hello $id" ;;
			message) echo "begun $id"; echo "wants w1"; echo "wants w2" ;;
			unknown) echo "says refused $id" ;;
			esac
		done`)
	f.launch.Mode, f.launch.Opening = agency.ModeProtocol, "begin"
	f.listen(0)
	f.beginOn(f.shown)
	refused := func() bool { return strings.Contains(f.log("runner"), "● refused w2\n") }
	eventually(t, "the refusals", refused)
	f = f.die()
	f.adopt()
	eventually(t, "the same on the pane", func() bool { return strings.Contains(f.shown.String(), "refused w2") })
	eventually(t, "the wrapper", func() bool { return strings.Count(f.intents(), `"refusal"`) == 2 })
	heard := f.raw("heard")
	if strings.Count(heard, "unknown w1 wants\n") != 1 || strings.Count(heard, "unknown w2 wants\n") != 1 {
		t.Errorf("the agent heard:\n%s", heard)
	}
}

// What an earlier wrapper wrote, and the agent has not read yet, is not written again: the next
// wrapper asks first how far the agent has read.
func TestUnread(t *testing.T) {
	t.Parallel()
	f := speaks(t)
	daemon := f.listen(0)
	f.beginOn(f.shown)
	link := receive(t, "the link", daemon.links)
	eventually(t, "the request", func() bool { return strings.Contains(f.log("runner"), "id r1\n") })
	pause := filepath.Join(f.dir, "pause")
	if err := os.WriteFile(pause, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := link.Say(t.Context(), agency.Saying{Kind: agency.SaysMessage, ID: "m1", Text: "one", By: "user"}); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = link.Say(t.Context(), agency.Saying{Kind: agency.SaysMessage, ID: "m2", Text: "more", By: "user"})
	}()
	eventually(t, "the message in the log", func() bool { return strings.Contains(f.log("runner"), "> more\n") })
	f = f.die()
	f.adopt()
	eventually(t, "a look", func() bool { return strings.Contains(f.intents(), `"look"`) })
	if err := os.Remove(pause); err != nil {
		t.Fatal(err)
	}
	eventually(t, "both messages", func() bool {
		return strings.Count(f.raw("heard"), "look ") == 2 && strings.Count(f.log("runner"), "● on it") == 3
	})
	if heard := f.raw("heard"); strings.Count(heard, "message m2 more") != 1 {
		t.Errorf("the agent heard:\n%s", heard)
	}
}

func (f *fixture) intents() string {
	f.t.Helper()
	data, err := os.ReadFile(filepath.Join(f.launch.AttemptDir, protocol.IntentFile))
	if err != nil {
		f.t.Fatal(err)
	}
	return string(data)
}

// An agent with which no conversation can begin has failed, in its own words, whatever the status
// with which it then ends.
func TestRefusedConversation(t *testing.T) {
	t.Parallel()
	f := prepare(t, `trap "exit 0" TERM; while read -r kind id; do echo "refused $id"; done`)
	f.launch.Mode, f.launch.Opening = agency.ModeProtocol, "begin"
	f.listen(0)
	f.beginOn(f.shown)
	exit := f.exit()
	if code, words := exit.Failure(); exit.EndedBy != agency.EndedByProtocol || code != agency.CodeRunnerStartFailed || !strings.Contains(words, "no such conversation") {
		t.Errorf("got %+v", exit)
	}
	if state, err := agency.Next(agency.Running, exit.Fact(false)); state != agency.Failed || err != nil {
		t.Errorf("got %s, %v", state, err)
	}
}

// A conversation is lost when the agent refuses to continue it, and not when anything else fails.
func TestLostConversation(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		agent, opening string
		want           agency.Code
	}{
		"refused":  {`trap "exit 0" TERM; while read -r kind id; do echo "refused $id"; done`, "begin", agency.CodeConversationLost},
		"too long": {wordsAgent, strings.Repeat("long ", 1<<20), agency.CodeRunnerStartFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := prepare(t, test.agent)
			f.launch.Mode, f.launch.Opening, f.launch.Resumes = agency.ModeProtocol, test.opening, "c"
			f.listen(0)
			f.beginOn(f.shown)
			exit := f.exit()
			if code, _ := exit.Failure(); code != test.want {
				t.Errorf("got %+v", exit)
			}
		})
	}
}

// fullDisk takes so many bytes, and then no more until it has room again.
type fullDisk struct {
	bytes.Buffer

	room int
}

func (d *fullDisk) Write(p []byte) (int, error) {
	if n := d.room; n >= 0 && n < len(p) {
		d.room = -1
		_, _ = d.Buffer.Write(p[:n])
		return n, unix.ENOSPC
	}
	return d.Buffer.Write(p)
}

// Wherever a full disk cuts a line off, that line does not count, and the next one does.
func TestIntentCutOff(t *testing.T) {
	t.Parallel()
	line := func(id string) []byte {
		data, err := json.Marshal(protocol.Intent{Saying: agency.Saying{Kind: agency.SaysMessage, ID: id}})
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	for room := range len(line("lost")) + 1 {
		disk := &fullDisk{room: room}
		add := runner.JournalTo(disk)
		if err := add(line("lost")); err == nil {
			t.Fatalf("%d bytes were enough", room)
		}
		if err := add(line("next")); err != nil {
			t.Fatal(err)
		}
		got := protocol.ParseIntents(disk.Bytes())
		if len(got) != 1 || got[0].ID != "next" {
			t.Errorf("after %d bytes: %+v", room, got)
		}
	}
}
