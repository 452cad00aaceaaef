package notify_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"agency"
	"agency/internal/notify"
)

// In any history of notices, failures and crashes, a channel that answers gets each notice once,
// plus at most once for each crash between the sending and its record, and never again after the
// notice was given up.
func TestHistories(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		script := rapid.SliceOfN(rapid.SampledFrom([]string{"notice", "again", "crash", "restart", "wait", "long"}), 1, 12).Draw(rt, "script")
		fails := rapid.SliceOfN(rapid.Bool(), 0, 40).Draw(rt, "fails")
		inputClosed := rapid.Bool().Draw(rt, "inputClosed")
		synctest.Test(t, func(t *testing.T) {
			h := &history{store: &memory{}, fails: fails, inputClosed: inputClosed, successes: map[string]int{}}
			h.begin(t)
			for i, step := range script {
				h.take(t, i, step)
				synctest.Wait()
			}
			h.settle()
			doubles := countDoubles(t, h.store, h.ids, h.successes)
			if doubles > h.crashes {
				t.Fatalf("%d doubles with %d crashes: %v", doubles, h.crashes, h.successes)
			}
			before := h.calls
			h.begin(t)
			for _, id := range h.ids {
				enqueue(t, h.notifier, notice(id))
			}
			h.settle()
			if h.calls != before {
				t.Fatalf("%d sends after all was settled", h.calls-before)
			}
		})
	})
}

// history is a notifier, its restarts and crashes, and what its channel got.
type history struct {
	notifier    *notify.Notifier
	store       *memory
	fails       []bool // which of the first sends fail
	inputClosed bool   // all sends fail
	ids         []string
	crashes     int

	mu        sync.Mutex
	dying     bool // the outbox takes nothing more
	calls     int
	successes map[string]int
}

// send is the channel.
func (h *history) send(_ context.Context, n *agency.Notice) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls++
	if h.inputClosed || h.calls <= len(h.fails) && h.fails[h.calls-1] {
		return errors.New("no")
	}
	h.successes[n.ID]++
	return nil
}

func (h *history) begin(t *testing.T) {
	outbox := &crashing{memory: h.store, dies: func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.dying
	}}
	h.notifier = newNotifier(outbox, notify.Route{Channel: &fake{name: "desk", do: h.send}})
	start(t, h.notifier)
}

// die sets whether the outbox takes nothing more.
func (h *history) die(dying bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dying = dying
}

// take takes the i-th step of a script.
func (h *history) take(t *testing.T, i int, step string) {
	add := func(id string) {
		h.ids = append(h.ids, id)
		enqueue(t, h.notifier, notice(id))
	}
	switch step {
	case "notice":
		add(fmt.Sprint("n", i))
	case "again":
		if len(h.ids) > 0 {
			enqueue(t, h.notifier, notice(h.ids[i%len(h.ids)]))
		}
	case "crash":
		h.die(true)
		add(fmt.Sprint("c", i))
		synctest.Wait()
		h.crashes++
		h.notifier.Stop()
		h.die(false)
		h.begin(t)
	case "restart":
		h.notifier.Stop()
		h.begin(t)
	case "wait":
		time.Sleep(10 * time.Second)
	case "long":
		time.Sleep(26 * time.Hour)
	}
}

// settle lets all that is due be sent, and ends the notifier.
func (h *history) settle() {
	time.Sleep(40 * time.Hour)
	synctest.Wait()
	h.notifier.Stop()
}

// crashing is an outbox of a process that may die after a send, before the success is recorded.
type crashing struct {
	*memory
	dies func() bool
	died bool
}

var errCrash = errors.New("killed")

func (c *crashing) RecordDispatch(ctx context.Context, d *agency.Dispatch) error {
	if c.died = c.died || c.dies(); c.died {
		<-ctx.Done() // nothing happens in a dead process
		return errCrash
	}
	return c.memory.RecordDispatch(ctx, d)
}

// countDoubles checks that each notice arrived or was given up, and counts those that arrived
// again.
func countDoubles(t *testing.T, store *memory, ids []string, successes map[string]int) (doubles int) {
	t.Helper()
	for _, id := range ids {
		found, err := store.Dispatches(context.Background(), id)
		if err != nil || len(found) != 1 || !found[0].Settled() {
			t.Fatalf("%s is not settled: %+v, %v", id, found, err)
		}
		sent := found[0].SentAt != nil
		if sent == (found[0].DeadAt != nil) || sent && successes[id] == 0 {
			t.Fatalf("%s arrived %d times: %+v", id, successes[id], found[0])
		}
		if successes[id] > 1 {
			doubles += successes[id] - 1
		}
	}
	return doubles
}
