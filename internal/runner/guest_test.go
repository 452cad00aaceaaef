package runner_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"golang.org/x/sys/unix"

	"agency"
	"agency/internal/protocol"
	"agency/internal/runner"
)

// wordsGuests is how a guest speaks words: KIND ID TEXT. It joins by a look.
var wordsGuests = protocol.Guests{
	Hear: func(_ protocol.Place, greeting json.RawMessage, id string, frame []byte) (protocol.GuestFrame, error) {
		words := strings.SplitN(string(frame)+"  ", " ", 3)
		text := strings.TrimSpace(words[2])
		f := protocol.GuestFrame{Saying: agency.Saying{ID: id, Text: text}, Frame: fmt.Appendf(nil, "%s %s %s", words[0], id, text), Request: json.RawMessage(words[1])}
		switch words[0] {
		case "greet":
			return protocol.GuestFrame{Reply: fmt.Appendf(nil, "greeted %s %s", words[1], greeting)}, nil
		case "look":
			f.Saying.Kind, f.Joins = protocol.SaysGuest, true
		case "message":
			f.Saying.Kind = agency.SaysMessage
		case "answer":
			return protocol.GuestFrame{Saying: agency.Saying{Kind: agency.SaysAnswer, ID: words[1], Decision: agency.Decision(text)}, Frame: frame, Answers: words[1]}, nil
		default:
			return f, errors.New("no words")
		}
		return f, nil
	},
	Audience: func(line []byte) protocol.Audience {
		word, id, _ := strings.Cut(string(line), " ")
		switch word {
		case "hello":
			return protocol.Audience{Replies: strings.TrimSpace(id)}
		case "asks":
			return protocol.Audience{Asks: id}
		case "answered":
			return protocol.Audience{Over: id}
		}
		return protocol.Audience{}
	},
	Reply:  func(_ []byte, request json.RawMessage) []byte { return append([]byte("reply "), request...) },
	Refuse: func(request json.RawMessage, why string) []byte { return fmt.Appendf(nil, "no %s: %s", request, why) },
}

// visitor is a guest.
type visitor struct {
	t    *testing.T
	conn *websocket.Conn
}

// dial connects to a door.
func dial(ctx context.Context, door string) (*websocket.Conn, int, error) {
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", door)
	}}}
	conn, resp, err := websocket.Dial(ctx, "ws://agency/rpc", &websocket.DialOptions{HTTPClient: client}) //nolint:bodyclose // which its documentation rules out
	if resp == nil {
		return nil, 0, err
	}
	return conn, resp.StatusCode, err
}

// knock prints the status with which a door answers.
func knock(door string) {
	_, status, _ := dial(context.Background(), door)
	fmt.Println(status)
}

// visit joins the conversation of a run.
func visit(t *testing.T, link *runner.Link) *visitor {
	t.Helper()
	door, err := link.Door(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	conn, _, err := dial(t.Context(), door.Socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.CloseNow() })
	v := &visitor{t, conn}
	v.says("look 7")
	v.hears("reply 7")
	return v
}

func (v *visitor) says(frame string) {
	v.t.Helper()
	if err := v.conn.Write(v.t.Context(), websocket.MessageText, []byte(frame)); err != nil {
		v.t.Fatal(err)
	}
}

// hears reads until a frame comes.
func (v *visitor) hears(want string) {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.t.Context(), timeout)
	defer cancel()
	for {
		_, got, err := v.conn.Read(ctx)
		if err != nil {
			v.t.Fatalf("waiting for %q: %v", want, err)
		}
		if string(got) == want {
			return
		}
	}
}

// leaves waits until the wrapper ends the connection.
func (v *visitor) leaves() {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.t.Context(), timeout)
	defer cancel()
	for {
		if _, _, err := v.conn.Read(ctx); err != nil {
			if ctx.Err() != nil {
				v.t.Error("the guest stayed")
			}
			return
		}
	}
}

// hosts returns a run whose agent works and asks nothing yet, and its link.
func hosts(t *testing.T, script string) (*fixture, *runner.Link, *fakeDaemon) {
	t.Helper()
	if os.Getenv("AGENCY_RUN_ID") != "" {
		t.Skip("a process of a run is no guest")
	}
	f := prepare(t, script)
	f.launch.Mode, f.launch.Opening = agency.ModeProtocol, "begin"
	daemon := f.listen(0)
	f.beginOn(f.shown)
	link := receive(t, "the link", daemon.links)
	eventually(t, "the first turn", func() bool { return strings.Contains(f.log("runner"), "● on it\n") })
	return f, link, daemon
}

// quietAgent asks after every message but the first.
const quietAgent = `
while read -r kind id text; do
	echo "$kind $id $text" >>heard
	case $kind in
	hello|look) echo "hello $id" ;;
	message) echo "begun $id"; echo "says on it"; [ "$text" = begin ] || echo "asks r1" ;;
	answer) echo "answered $id" ;;
	esac
done`

// Two guests and agency lead one conversation: each gets the replies to its own requests, both see what
// the agent asks, and the first answer is the answer.
func TestGuests(t *testing.T) {
	t.Parallel()
	f, link, daemon := hosts(t, quietAgent)
	one, two := visit(t, link), visit(t, link)
	one.says("greet 8")
	one.hears(`greeted 8 "words"`)
	one.says("message 9 more")
	one.hears("asks r1")
	two.hears("asks r1")
	two.says("answer r1 deny")
	one.hears("answered r1")
	two.hears("answered r1")
	one.says("answer r1 allow")
	one.says("look 10")
	one.hears("reply 10")
	if heard := f.raw("heard"); strings.Count(heard, "answer ") != 1 || !strings.Contains(heard, "answer r1 deny\n") {
		t.Errorf("the agent heard:\n%s", heard)
	}
	log := f.log("runner")
	for _, want := range []string{"> (user-terminal) more\n", "> (user-terminal) request 1: deny\n— request 1 taken\n"} {
		if !strings.Contains(log, want) {
			t.Errorf("%q is not in the log:\n%s", want, log)
		}
	}
	f = f.die()
	two.leaves()
	f.adopt()
	link = receive(t, "the second link", daemon.links)
	_, err := link.Say(t.Context(), allow("r1"))
	if err == nil || !strings.Contains(err.Error(), "answered by user-terminal") {
		t.Errorf("got %v", err)
	}
	visit(t, link).says("message 1 again")
	eventually(t, "the message", func() bool { return strings.Contains(f.log("runner"), "> (user-terminal) again\n● on it\n") })
	if heard := f.raw("heard"); strings.Count(heard, " more\n") != 1 {
		t.Errorf("the agent heard:\n%s", heard)
	}
}

// A terminal finds its door again, also when the next wrapper was killed before it came.
func TestDoorStaysOpen(t *testing.T) {
	t.Parallel()
	f, link, daemon := hosts(t, quietAgent)
	door, err := link.Door(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	enter := func() *visitor {
		var conn *websocket.Conn
		eventually(t, "a guest", func() bool {
			var err error
			conn, _, err = dial(t.Context(), door.Socket)
			return err == nil
		})
		t.Cleanup(func() { _ = conn.CloseNow() })
		v := &visitor{t, conn}
		v.says("look 1")
		v.hears("reply 1")
		return v
	}
	first := enter()
	for range 2 {
		f = f.die()
		first.leaves()
		f.adopt()
		receive(t, "the next link", daemon.links)
		eventually(t, "an open door", func() bool { _, err := os.Lstat(door.Socket); return err == nil })
	}
	enter()
}

// What a guest says wrongly ends at most the guest.
func TestHostileGuests(t *testing.T) {
	t.Parallel()
	f, link, _ := hosts(t, quietAgent)
	for _, frame := range []string{"junk", strings.Repeat("x", 2<<20)} {
		v := visit(t, link)
		_ = v.conn.Write(t.Context(), websocket.MessageText, []byte(frame)) // may fail: it is too long
		v.leaves()
	}
	binary := visit(t, link)
	_ = binary.conn.Write(t.Context(), websocket.MessageBinary, []byte("look 1"))
	binary.leaves()
	v := visit(t, link)
	v.says("answer r9 allow") // the agent did not ask r9
	v.says("answer  ")
	v.says("message 1 still here")
	eventually(t, "the message", func() bool { return strings.Contains(f.log("runner"), "> (user-terminal) still here\n● on it\n") })
	if heard := f.raw("heard"); strings.Contains(heard, "answer") {
		t.Errorf("the agent heard:\n%s", heard)
	}
}

// A guest that does not read what comes must leave. The agent does not wait for it.
func TestSlowGuest(t *testing.T) {
	t.Parallel()
	f, link, _ := hosts(t, `
while read -r kind id text; do
	case $kind in
	hello|look) echo "hello $id" ;;
	message) echo "begun $id"; echo "says on it"
		[ "$text" = begin ] || { head -c 8000000 /dev/zero | tr '\0' x | fold -w 60000 | sed 's/^/says /'; echo; : >said; } ;;
	esac
done`)
	slow := visit(t, link)
	slow.says("message 1 all")
	eventually(t, "the end of what the agent says", func() bool { _, err := os.Stat(filepath.Join(f.dir, "said")); return err == nil })
	slow.conn.SetReadLimit(-1)
	slow.leaves()
}

// A guest learns that it cannot join when what it would get of the conversation is too long.
func TestGuestOfLongConversation(t *testing.T) {
	t.Parallel()
	_, link, _ := hosts(t, `
while read -r kind id text; do
	case $kind in
	hello|look) [ "$text" = all ] && head -c 17000000 /dev/zero | tr '\0' x; echo "hello $id" ;;
	message) echo "begun $id"; echo "says on it" ;;
	esac
done`)
	v := visit(t, link)
	v.says("look 8 all")
	v.hears("no 8: the conversation is too long for a terminal to join it: agency attach shows it")
	v.says("look 9")
	v.hears("reply 9")
}

// A door is for one guest, which is the user, and only where a terminal can join.
func TestDoor(t *testing.T) {
	t.Parallel()
	f, link, _ := hosts(t, quietAgent)
	door, err := link.Door(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(filepath.Dir(door.Socket)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder of the door: %v, %v", info, err)
	}
	cmd := exec.Command(os.Args[0], "knock", door.Socket)
	cmd.Env = append(os.Environ(), "AGENCY_RUN_ID=r_1")
	if out, err := cmd.Output(); err != nil || !bytes.Contains(out, []byte("403")) {
		t.Errorf("a process of a run got %q, %v", out, err)
	}
	conn, _, err := dial(t.Context(), door.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.CloseNow() }()
	eventually(t, "a closed door", func() bool {
		_, err := os.Lstat(door.Socket)
		return errors.Is(err, os.ErrNotExist)
	})
	f.signal(unix.SIGTERM)
	f.wait()
	if _, err := os.Lstat(filepath.Dir(door.Socket)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder of the door: %v", err)
	}
}
