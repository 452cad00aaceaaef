package runner_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agency"
	"agency/internal/runner"
)

// lastUpdate receives updates until one satisfies ok.
func lastUpdate(t *testing.T, d *fakeDaemon, what string, ok func(agency.WrapperUpdate) bool) agency.WrapperUpdate {
	t.Helper()
	for {
		if u := receive(t, what, d.updates); ok(u) {
			return u
		}
	}
}

func hasExit(u agency.WrapperUpdate) bool { return u.Exit != nil }

func TestConversation(t *testing.T) {
	t.Parallel()
	f := prepare(t, `echo hello; read line; exit 8`)
	d := f.listen(0)
	f.begin(true)
	hello := receive(t, "hello", d.hellos)
	if hello.RunID != f.launch.RunID || hello.Attempt != 1 || hello.Token != "secret" || hello.Wrapper.PID != f.cmd.Process.Pid {
		t.Errorf("hello %+v", hello)
	}
	u := lastUpdate(t, d, "start and output", func(u agency.WrapperUpdate) bool { return u.Start != nil && u.Output != nil })
	if !alive(u.Start.Runner) || u.Exit != nil {
		t.Errorf("update %+v", u)
	}
	f.typeKeys("\r")
	exit := lastUpdate(t, d, "exit", hasExit).Exit
	if record := f.exit(); record.ExitCode != 8 || exit.ExitCode != 8 {
		t.Errorf("reported %+v, recorded %+v", exit, record)
	}
	f.wait()
}

func TestDaemonComesLater(t *testing.T) {
	t.Parallel()
	f := prepare(t, `read line; exit 8`)
	f.alone = true
	f.begin(true)
	f.started()
	d := f.listen(0)
	lastUpdate(t, d, "start", func(u agency.WrapperUpdate) bool { return u.Start != nil })
	// The daemon goes away and comes back: the wrapper sends the same update again.
	_ = receive(t, "link", d.links).Close()
	lastUpdate(t, d, "start again", func(u agency.WrapperUpdate) bool { return u.Start != nil })
	link := receive(t, "second link", d.links)
	_ = d.server.Close()
	_ = link.Close()
	f.typeKeys("\r")
	d = f.listen(0) // before the wrapper has given up to report the exit
	if exit := lastUpdate(t, d, "exit", hasExit).Exit; exit.ExitCode != 8 {
		t.Errorf("reported %+v", exit)
	}
	f.wait()
}

// A runner whose worktree is not made yet starts when the daemon says so, to which its wrapper is
// connected already.
func TestGo(t *testing.T) {
	t.Parallel()
	f := prepare(t, `exit 8`)
	f.launch.Waits = true
	d := f.listen(0)
	f.begin(true)
	link := receive(t, "link", d.links)
	if u := receive(t, "the first update", d.updates); u.Start != nil || u.Exit != nil {
		t.Fatalf("the runner did not wait: %+v", u)
	}
	if err := link.Go(t.Context()); err != nil {
		t.Fatal(err)
	}
	lastUpdate(t, d, "start", func(u agency.WrapperUpdate) bool { return u.Start != nil })
	if record := f.exit(); record.ExitCode != 8 {
		t.Errorf("recorded %+v", record)
	}
	f.wait()
}

// A wrapper whose session ends while it waits, or that the daemon refuses then, never starts its
// runner, and leaves no record: its start was cut off, and the runner is not at fault.
func TestNoGo(t *testing.T) {
	t.Parallel()
	for name, status := range map[string]int{"its session ends": 0, "it is refused": http.StatusForbidden} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := prepare(t, `touch ran`)
			f.launch.Waits = true
			d := f.listen(status)
			f.begin(true)
			if status == 0 {
				receive(t, "the first update", d.updates)
				f.signal(unix.SIGHUP)
			}
			f.wait()
			for _, name := range []string{"started.json", "runner_done.json"} {
				if _, err := os.Lstat(filepath.Join(f.launch.AttemptDir, name)); err == nil {
					t.Errorf("there is %s", name)
				}
			}
		})
	}
}

func TestRefusedUpgrade(t *testing.T) {
	t.Parallel()
	f := prepare(t, `read line; exit 8`)
	d := f.listen(http.StatusConflict)
	f.begin(true)
	receive(t, "the attempt to connect", d.hellos)
	f.started()
	time.Sleep(300 * time.Millisecond) // long enough for many more attempts
	f.typeKeys("\r")
	if code := f.wait(); code != 8 || len(d.hellos) != 0 {
		t.Errorf("exit code %d after %d more attempts to connect", code, len(d.hellos))
	}
}

func TestRefusedHello(t *testing.T) {
	t.Parallel()
	f := prepare(t, `read line; exit 8`)
	f.alone = true
	listener, err := net.Listen("unix", f.launch.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	f.begin(true)
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_, _ = http.ReadRequest(bufio.NewReader(conn))
	_, _ = conn.Write([]byte("HTTP/1.1 101 Switching Protocols\r\n\r\n"))
	link := runner.NewLink(conn, "")
	if _, err := link.Hello(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := link.Refuse(agency.Errorf(agency.CodePermissionDenied, "wrong token")); err != nil {
		t.Fatal(err)
	}
	if _, err := link.Input(t.Context(), "hello", anything); !agency.IsCode(err, agency.CodeInvalidState) {
		t.Errorf("input on a closed link: %v", err)
	}
	_ = listener.(*net.UnixListener).SetDeadline(time.Now().Add(300 * time.Millisecond))
	if _, err := listener.Accept(); err == nil {
		t.Error("the wrapper came again")
	}
	f.typeKeys("\r")
	if code := f.wait(); code != 8 {
		t.Errorf("exit code %d", code)
	}
}

func TestStopByLink(t *testing.T) {
	t.Parallel()
	f := prepare(t, `trap 'sleep 0.1; exit 9' TERM; echo ready; while :; do sleep 0.02; done`)
	d := f.listen(0)
	f.begin(true)
	link := receive(t, "link", d.links)
	// At once: a stop during the start takes effect.
	if err := link.Stop(t.Context(), agency.EndedByTimeLimit); err != nil {
		t.Fatal(err)
	}
	exit := lastUpdate(t, d, "exit", hasExit).Exit
	if exit.EndedBy != agency.EndedByTimeLimit {
		t.Errorf("reported %+v", exit)
	}
	f.wait()
	if err := link.Stop(t.Context(), agency.EndedByStop); !agency.IsCode(err, agency.CodeInvalidState) {
		t.Errorf("stop without a wrapper: %v", err)
	}
}

// A daemon that does not know whether its stop arrived may repeat it: the runner keeps its grace.
func TestStopAgainKeepsTheGrace(t *testing.T) {
	t.Parallel()
	f := prepare(t, `trap 'echo stopping; read line; echo tidy; exit 9' TERM; echo ready; while :; do sleep 0.02; done`)
	f.launch.Grace = time.Hour
	d := f.listen(0)
	f.begin(true)
	link := receive(t, "link", d.links)
	f.logged("ready")
	for range 3 {
		if err := link.Stop(t.Context(), agency.EndedByStop); err != nil {
			t.Fatal(err)
		}
	}
	f.logged("stopping")
	_ = link.Close() // the daemon dies, and the next one repeats the stop
	if err := receive(t, "second link", d.links).Stop(t.Context(), agency.EndedByStop); err != nil {
		t.Fatal(err)
	}
	f.typeKeys("\r")
	if exit := f.exit(); exit.ExitCode != 9 || exit.Signal != "" || exit.EndedBy != agency.EndedByStop {
		t.Errorf("record %+v", exit)
	}
	if start := f.started(); start.Grace != time.Hour {
		t.Errorf("recorded a grace of %s", start.Grace)
	}
	f.wait()
}

// A forced stop ends the grace at once.
func TestForce(t *testing.T) {
	t.Parallel()
	f := prepare(t, `trap 'echo stopping' TERM; trap "" HUP; echo ready; while :; do sleep 0.02; done`)
	f.launch.Grace = time.Hour
	d := f.listen(0)
	f.begin(true)
	link := receive(t, "link", d.links)
	f.logged("ready")
	if err := link.Stop(t.Context(), agency.EndedByStop); err != nil {
		t.Fatal(err)
	}
	f.logged("stopping")
	if err := link.Force(t.Context()); err != nil {
		t.Fatal(err)
	}
	if exit := f.exit(); exit.Signal != "SIGKILL" || exit.EndedBy != agency.EndedByStop {
		t.Errorf("record %+v", exit)
	}
	f.wait()
}

func TestInput(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ modes, want string }{
		"plain":    {"", "one^Mtwo\tthree^M"},
		"paste":    {`\033[?2004h`, "^[[200~one^Jtwo\tthree^[[201~^M"},
		"combined": {`\033[?1;2004h\033[?25l`, "^[[200~one^Jtwo\tthree^[[201~^M"},
		"off":      {`\033[?2004h\033[?2004;25l`, "one^Mtwo\tthree^M"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := len(strings.NewReplacer("^[", ".", "^M", ".", "^J", ".").Replace(c.want))
			f := prepare(t, `stty raw -echo; printf '`+c.modes+`ready'; head -c `+itoa(n)+` >typed; echo thanks; sleep 100`)
			d := f.listen(0)
			f.begin(true)
			link := receive(t, "link", d.links)
			f.logged("ready")
			got, err := link.Input(t.Context(), "one\ntwo\tthree", anything)
			if err != nil || got.Confirmed || got.Effect != agency.EffectOutput {
				t.Errorf("delivery %+v, %v", got, err)
			}
			f.logged("thanks")
			text := f.raw("typed")
			if text = strings.NewReplacer("\x1b", "^[", "\r", "^M", "\n", "^J").Replace(text); text != c.want {
				t.Errorf("typed %q, want %q", text, c.want)
			}
		})
	}
}

// Keys are typed unchanged, and not into a user's draft.
func TestKeys(t *testing.T) {
	t.Parallel()
	f := prepare(t, `stty raw -echo; printf ready; head -c 2 >typed; echo thanks; exec cat`)
	d := f.listen(0)
	f.begin(true)
	link := receive(t, "link", d.links)
	f.logged("ready")
	for _, keys := range []string{"2", "\x1b"} {
		if err := link.Keys(t.Context(), keys, anything); err != nil {
			t.Errorf("%q: %v", keys, err)
		}
	}
	f.logged("thanks")
	if got := f.raw("typed"); got != "2\x1b" {
		t.Errorf("typed %q", got)
	}
	f.typeKeys("half a sent")
	f.logged("half a sent")
	if err := link.Keys(t.Context(), "1", anything); !agency.IsCode(err, agency.CodeInputRefused) {
		t.Errorf("error %v", err)
	}
}

// A terminal in line mode silently drops what is too long for a line.
func TestInputOfLongLines(t *testing.T) {
	t.Parallel()
	f := prepare(t, `echo ready; read one; read two; echo "${#one} ${#two}"; sleep 100`)
	d := f.listen(0)
	f.begin(true)
	link := receive(t, "link", d.links)
	f.logged("ready")
	longest := strings.Repeat("x", runner.LongestLine)
	_, err := link.Input(t.Context(), "short\n"+longest+"x", anything)
	if e := agency.AsError(err); !agency.IsCode(err, agency.CodeInputRefused) || !strings.HasPrefix(e.Message, "line 2 of the message has ") || e.Hint == "" {
		t.Errorf("error %v", err)
	}
	if _, err := link.Input(t.Context(), "short\n"+longest, anything); err != nil {
		t.Error(err)
	}
	f.logged("5 " + itoa(runner.LongestLine))
}

func TestInputRefused(t *testing.T) {
	t.Parallel()
	f := prepare(t, `stty raw -echo; echo ready; exec cat`)
	d := f.listen(0)
	f.begin(true)
	link := receive(t, "link", d.links)
	f.logged("ready")
	f.typeKeys("\x1b[I") // a focus report is not typing
	for _, text := range []string{"", " \n", "a\x1b[201~b", "a\rb", "\x03", "\u0085", "\xff", strings.Repeat("x", 300<<10)} {
		if _, err := link.Input(t.Context(), text, anything); !agency.IsCode(err, agency.CodeInputRefused) {
			t.Errorf("%.20q: error %v", text, err)
		}
	}
	if got, err := link.Input(t.Context(), "fine", anything); err != nil || got.Effect != agency.EffectOutput {
		t.Errorf("delivery %+v, %v", got, err)
	}
	f.typeKeys("half a sent")
	f.logged("half a sent")
	_, err := link.Input(t.Context(), "hello", anything)
	if !agency.IsCode(err, agency.CodeInputRefused) || !strings.Contains(err.Error(), "the user is typing in r_") {
		t.Errorf("error %v", err)
	}
	if strings.Contains(f.log("runner"), "hello") {
		t.Error("the text was typed into a user's draft")
	}

	h := prepare(t, `sleep 100`)
	h.launch.Headless = true
	d = h.listen(0)
	h.begin(false)
	if _, err := receive(t, "link", d.links).Input(t.Context(), "hello", anything); !agency.IsCode(err, agency.CodeInputRefused) {
		t.Errorf("headless: error %v", err)
	}
}

// peer connects a Link to a peer that sends raw lines.
func peer(t *testing.T) (*runner.Link, net.Conn) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	other, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	link := runner.NewLink(other, "")
	t.Cleanup(func() { _, _ = conn.Close(), link.Close() })
	return link, conn
}

func TestLinkOfStrangers(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"no hello":  `{"kind":"update","id":1}` + "\n",
		"no JSON":   "GET / HTTP/1.1\r\n",
		"too long":  `{"kind":"hello","text":"` + strings.Repeat("x", 70<<10) + `"}` + "\n",
		"cut off":   `{"kind":"hello"`,
		"no kind":   "{}\n",
		"no fields": `{"kind":"hello"}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			link, conn := peer(t)
			go func() { _, _ = conn.Write([]byte(line)); _ = conn.(*net.UnixConn).CloseWrite() }()
			if hello, err := link.Hello(t.Context()); err == nil {
				t.Errorf("hello %+v", hello)
			}
		})
	}
	link, _ := peer(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := link.Hello(ctx); err == nil {
		t.Error("a hello without a message")
	}
}

// Serve ends without a panic whatever a wrapper sends, and passes on only complete updates.
func FuzzServe(f *testing.F) {
	f.Add([]byte(`{"kind":"update","id":1,"update":{}}` + "\n"))
	f.Add([]byte(`{"kind":"answer","id":7}` + "\n" + `{"kind":"news"}` + "\n{"))
	f.Add([]byte(`{"kind":"update","update":{"exit":{"exit_code":"x"}}}` + "\n"))
	f.Fuzz(func(_ *testing.T, data []byte) {
		here, there := net.Pipe()
		link := runner.NewLink(here, "")
		go func() { _, _ = bytes.NewReader(data).WriteTo(there); _ = there.Close() }()
		go func() {
			dec := json.NewDecoder(there)
			for dec.Decode(&struct{}{}) == nil {
			}
		}()
		_ = link.Serve(func(agency.WrapperUpdate) error { return nil })
		_ = link.Close()
	})
}

func TestStopAfterEnd(t *testing.T) {
	t.Parallel()
	f := prepare(t, `(trap "" TERM HUP; echo $$ >child; while :; do sleep 0.1; done) & sleep 0.2; exit 3`)
	d := f.listen(0)
	f.begin(true)
	link := receive(t, "link", d.links)
	f.exit()
	// While the wrapper ends leftovers, a forced stop ends the wait, and nothing reads an input.
	if _, err := link.Input(t.Context(), "hello", anything); err != nil && !agency.IsCode(err, agency.CodeInvalidState) {
		t.Errorf("input: %v", err)
	}
	if err := link.Force(t.Context()); err != nil && !agency.IsCode(err, agency.CodeInvalidState) {
		t.Errorf("stop: %v", err)
	}
	f.wait()
	if exit := f.exit(); exit.ExitCode != 3 || exit.EndedBy != agency.EndedByRunner {
		t.Errorf("record %+v", exit)
	}
}
