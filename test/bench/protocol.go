package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"agency"
	"agency/internal/api"
)

// measureProtocol has an agent in the mode protocol ask again and again, and measures the way of the
// request to a client that waits for it, and the way of the answer back.
func measureProtocol(ctx context.Context, b *bench) (err error) {
	w, repo, err := newWorldWith(ctx, b, 20)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	path := filepath.Join(w.dir, "times")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		return err
	}
	pipe, err := os.OpenFile(path, os.O_RDWR, 0) // for writing too: opening does not wait for the other side
	if err != nil {
		return err
	}
	defer func() { _ = pipe.Close() }()
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := w.configure(fmt.Sprintf("[runners.custom.asks]\nexec = %q\ndefault_args = [%q, %q]\nprotocol = \"acp\"\n", self, asks, path)); err != nil {
		return err
	}
	if err := errors.Join(w.startTmux(ctx), w.startDaemon(ctx)); err != nil {
		return err
	}
	wt, err := wait(ctx, w)
	if err != nil {
		return err
	}
	defer wt.cancel()
	handle, err := w.run(ctx, repo, w.agency, "run", "--runner", "asks", "--name", "asks", "--prompt", "go")
	if err != nil {
		return fmt.Errorf("%w: %s", err, handle)
	}
	return answerOften(ctx, b, w, wt, json.NewDecoder(pipe))
}

// answerOften answers each request of the agent as soon as it is told.
func answerOften(ctx context.Context, b *bench, w *world, wt *waiter, times *json.Decoder) error {
	var asked, taken, answered samples
	last := "" // request
	for i := range b.reps(500, 100) + 1 {
		var began, got int64
		if err := times.Decode(&began); err != nil {
			return err
		}
		told, err := wt.until(ctx, func(e agency.Event) bool {
			var said struct{ Request *agency.Request }
			if e.Type != agency.AgentStateChanged || json.Unmarshal(e.Data, &said) != nil || said.Request == nil || said.Request.ID == last {
				return false
			}
			last = said.Request.ID
			return true
		})
		if err != nil {
			return err
		}
		sent := time.Now()
		if _, err := api.Call(ctx, w.client, api.AnswerRun, api.AnswerRunRequest{Run: "asks", PromptID: last, Decision: agency.Allow}); err != nil {
			return err
		}
		done := time.Now()
		if err := times.Decode(&got); err != nil {
			return err
		}
		if i > 0 { // the first one warms up
			asked = append(asked, told.Sub(time.Unix(0, began)))
			taken = append(taken, time.Unix(0, got).Sub(sent))
			answered = append(answered, done.Sub(sent))
		}
	}
	b.table.add(percentiles("request -> a client that waits", asked), inMS(asked.at(0.99)), atMost(20, " ms"))
	b.table.add(percentiles("answer -> the agent has it", taken), inMS(taken.at(0.99)), atMost(10, " ms"))
	b.table.add(percentiles("answer -> the client knows that it was taken", answered), 0, nil)
	return nil
}

// asks is the argument with which this program is an agent that speaks the Agent Client Protocol.
const asks = "asks"

// askForever is that agent: after each answer it asks again. It writes the times of each request and of its
// answer to a pipe, in nanoseconds.
func askForever(in io.Reader, out io.Writer, path string) error {
	pipe, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	n := 0
	request := func() {
		n++
		_, _ = fmt.Fprintln(pipe, time.Now().UnixNano())
		_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%d,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"call%d","kind":"execute","title":"make"},"options":[{"optionId":"yes","kind":"allow_once"},{"optionId":"no","kind":"reject_once"}]}}`+"\n", n, n)
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		at := time.Now()
		var said struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if err := json.Unmarshal(lines.Bytes(), &said); err != nil {
			return err
		}
		reply := func(text string) { _, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,%s}`+"\n", said.ID, text) }
		switch said.Method {
		case "":
			_, _ = fmt.Fprintln(pipe, at.UnixNano())
			time.AfterFunc(20*time.Millisecond, request)
		case "initialize":
			reply(`"result":{"protocolVersion":1}`)
		case "session/new":
			reply(`"result":{"sessionId":"s1"}`)
		case "session/prompt":
			request()
		default:
			reply(`"error":{"code":-32601,"message":"Method not found"}`)
		}
	}
	return lines.Err()
}
