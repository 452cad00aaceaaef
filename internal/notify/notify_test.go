package notify_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/creack/pty"
	"go.uber.org/goleak"

	"agency"
	"agency/internal/duration"
	"agency/internal/notify"
	"agency/internal/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a channel that calls do, and records the notices that it gets.
type fake struct {
	name string
	do   func(ctx context.Context, n *agency.Notice) error

	mu  sync.Mutex
	got []string // the ids of notices, and when
}

func (f *fake) Name() string { return f.name }

func (f *fake) Send(ctx context.Context, n *agency.Notice) error {
	f.mu.Lock()
	f.got = append(f.got, n.ID)
	f.mu.Unlock()
	if f.do == nil {
		return nil
	}
	return f.do(ctx, n)
}

func (f *fake) received() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.got)
}

// sometimes fails the first n times.
func sometimes(n int) func(context.Context, *agency.Notice) error {
	return func(context.Context, *agency.Notice) error {
		if n--; n >= 0 {
			return errors.New("not now")
		}
		return nil
	}
}

func never(context.Context, *agency.Notice) error { return errors.New("not ever") }

// hangs waits until its context ends.
func hangs(ctx context.Context, _ *agency.Notice) error {
	<-ctx.Done()
	return ctx.Err()
}

func openOutbox(t testing.TB, path string) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(context.Background(), path, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func newNotifier(outbox notify.Outbox, routes ...notify.Route) *notify.Notifier {
	return notify.New(notify.Settings{
		Routes: routes, Zone: time.UTC, Outbox: outbox, Log: slog.New(slog.DiscardHandler), Now: time.Now,
		Random: func() float64 { return 0.5 },
	})
}

func start(t testing.TB, n *notify.Notifier) {
	t.Helper()
	if err := n.Start(context.Background()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Stop)
}

func notice(id string) agency.Notice {
	return agency.Notice{ID: id, Kind: "worker.error", Title: "fix-login failed", Body: "exit 1", At: time.Now()}
}

func enqueue(t testing.TB, n *notify.Notifier, notices ...agency.Notice) {
	t.Helper()
	for _, one := range notices {
		if _, err := n.Enqueue(context.Background(), one); err != nil {
			t.Fatal(err)
		}
	}
}

func wantReceived(t testing.TB, f *fake, want ...string) {
	t.Helper()
	if got := f.received(); !slices.Equal(got, want) {
		t.Errorf("%s got %q, want %q", f.name, got, want)
	}
}

// A notice goes once to every channel whose rules accept it, however often it is enqueued.
func TestRules(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agency.db")
	synctest.Test(t, func(t *testing.T) {
		all, errorsOnly, night := &fake{name: "all"}, &fake{name: "errors"}, &fake{name: "night"}
		n := newNotifier(openOutbox(t, path), notify.Route{Channel: all},
			notify.Route{Channel: errorsOnly, Kinds: []string{"worker.error", "worker.lost"}}, notify.Route{Channel: night, Tags: []string{"night"}})
		start(t, n)
		stuck, tagged := notice("n2"), notice("n3")
		stuck.Kind, tagged.Tags = "worker.stuck", []string{"worker", "night"}
		enqueue(t, n, notice("n1"), stuck, tagged, notice("n1"))
		synctest.Wait()
		enqueue(t, n, notice("n1"))
		synctest.Wait()
		wantReceived(t, all, "n1", "n2", "n3")
		wantReceived(t, errorsOnly, "n1", "n3")
		wantReceived(t, night, "n3")
		if to, err := n.Enqueue(context.Background(), stuck); err != nil || !slices.Equal(to, []string{"all"}) {
			t.Errorf("a stuck worker is sent to %q, %v", to, err)
		}
	})
}

// A channel that hangs delays neither the other channels nor the caller that enqueues.
func TestSlowChannel(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agency.db")
	synctest.Test(t, func(t *testing.T) {
		slow, fast := &fake{name: "slow", do: hangs}, &fake{name: "fast"}
		outbox := openOutbox(t, path)
		n := newNotifier(outbox, notify.Route{Channel: slow}, notify.Route{Channel: fast})
		start(t, n)
		began := time.Now()
		for i := range 5 {
			enqueue(t, n, notice(fmt.Sprint("n", i)))
		}
		synctest.Wait()
		if passed := time.Since(began); passed != 0 {
			t.Errorf("it took %s", passed)
		}
		wantReceived(t, fast, "n0", "n1", "n2", "n3", "n4")
		wantReceived(t, slow, "n0")
		// A channel that fails does not delay the first try of another.
		time.Sleep(5*15*time.Second + time.Millisecond)
		synctest.Wait()
		if got := slow.received(); !slices.Equal(got[:5], []string{"n0", "n1", "n2", "n3", "n4"}) {
			t.Errorf("slow got %q", got)
		}
		states, err := outbox.ChannelStates(context.Background())
		if err != nil || states[1].Waiting != 5 || states[1].Error != "no answer within 15s" {
			t.Errorf("%+v, %v", states, err)
		}
	})
}

// A failed notice is tried twelve times over a day, and never again.
func TestRetries(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agency.db")
	synctest.Test(t, func(t *testing.T) {
		dead, flaky := &fake{name: "dead", do: never}, &fake{name: "flaky", do: sometimes(3)}
		outbox := openOutbox(t, path)
		n := newNotifier(outbox, notify.Route{Channel: dead}, notify.Route{Channel: flaky})
		start(t, n)
		enqueue(t, n, notice("n1"))
		for i, pause := range []int{0, 1, 3, 9, 27, 81, 243, 729, 2187, 6561, 19683, 59049} {
			time.Sleep(time.Duration(pause) * time.Second)
			synctest.Wait()
			if got := len(dead.received()); got != i+1 {
				t.Fatalf("%d tries %ds after try %d", got, pause, i)
			}
		}
		time.Sleep(5 * 24 * time.Hour)
		synctest.Wait()
		if got := len(dead.received()); got != 12 {
			t.Errorf("%d tries", got)
		}
		wantReceived(t, flaky, "n1", "n1", "n1", "n1")
		letters, err := outbox.DeadDispatches(context.Background(), 10)
		if err != nil || len(letters) != 1 || letters[0].Channel != "dead" || letters[0].Error != "not ever" || letters[0].Tries != 12 {
			t.Errorf("dead letters %+v, %v", letters, err)
		}
		// It is not tried after a restart either, and not when it is enqueued again.
		n.Stop()
		start(t, n)
		enqueue(t, n, notice("n1"))
		synctest.Wait()
		if got := len(dead.received()); got != 12 {
			t.Errorf("%d tries after the end", got)
		}
	})
}

// In quiet hours only urgent notices are sent; the others, and those due for another try, are sent
// at the end.
func TestQuietHours(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agency.db")
	synctest.Test(t, func(t *testing.T) {
		desk, hook := &fake{name: "desk"}, &fake{name: "hook", do: sometimes(1)}
		n := notify.New(notify.Settings{
			Routes: []notify.Route{{Channel: desk, Urgent: []string{"worker.lost"}}, {Channel: hook}},
			Quiet:  duration.Hours{From: 22 * 60, To: 7 * 60}, Zone: time.UTC, Outbox: openOutbox(t, path),
			Log: slog.New(slog.DiscardHandler), Now: time.Now, Random: func() float64 { return 0.5 },
		})
		start(t, n)
		// The clock of a bubble begins at midnight.
		time.Sleep(22*time.Hour - 500*time.Millisecond)
		enqueue(t, n, notice("evening"))
		synctest.Wait()
		wantReceived(t, desk, "evening")
		wantReceived(t, hook, "evening")
		time.Sleep(time.Hour)
		lost := notice("lost")
		lost.Kind = "worker.lost"
		enqueue(t, n, notice("night"), lost)
		time.Sleep(7*time.Hour + 59*time.Minute)
		synctest.Wait()
		wantReceived(t, desk, "evening", "lost")
		wantReceived(t, hook, "evening")
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		wantReceived(t, desk, "evening", "lost", "night")
		if got := hook.received(); len(got) != 4 {
			t.Errorf("hook got %q", got)
		}
	})
}

// Changed quiet hours apply to all waiting notices, also to those that failed before; a notice that
// waits for its next try keeps waiting.
func TestOtherQuietHours(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agency.db")
	synctest.Test(t, func(t *testing.T) {
		outbox := openOutbox(t, path)
		hook, late := &fake{name: "hook", do: sometimes(1)}, &fake{name: "late", do: sometimes(9)}
		with := func(quiet duration.Hours) *notify.Notifier {
			n := notify.New(notify.Settings{
				Routes: []notify.Route{{Channel: hook}, {Channel: late, Urgent: []string{"worker.error"}}},
				Quiet:  quiet, Zone: time.UTC, Outbox: outbox, Log: slog.New(slog.DiscardHandler), Now: time.Now, Random: func() float64 { return 0.5 },
			})
			start(t, n)
			return n
		}
		n := with(duration.Hours{From: 22 * 60, To: 7 * 60})
		time.Sleep(22*time.Hour - 500*time.Millisecond)
		enqueue(t, n, notice("evening"))
		time.Sleep(time.Hour) // the next tries of late come after 40 minutes and after two hours
		synctest.Wait()
		tries := len(late.received())
		n.Stop()
		with(duration.Hours{From: 3 * 60, To: 7 * 60})
		synctest.Wait()
		wantReceived(t, hook, "evening", "evening")
		if got := len(late.received()); got != tries {
			t.Errorf("tried %d times, want %d", got, tries)
		}
	})
}

// A notice that arrives through the previous, stopped notifier is still sent.
func TestEnqueuedThroughTheOneBefore(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agency.db")
	synctest.Test(t, func(t *testing.T) {
		outbox, desk := openOutbox(t, path), &fake{name: "desk"}
		before := newNotifier(outbox, notify.Route{Channel: desk})
		start(t, before)
		before.Stop()
		start(t, newNotifier(outbox, notify.Route{Channel: desk}))
		synctest.Wait()
		enqueue(t, before, notice("between"))
		time.Sleep(time.Minute)
		synctest.Wait()
		wantReceived(t, desk, "between")
	})
}

// A notice that was delayed by a clock that was far ahead is sent when the clock is right again.
func TestClockWasAhead(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agency.db")
	synctest.Test(t, func(t *testing.T) {
		outbox, desk := openOutbox(t, path), &fake{name: "desk", do: sometimes(1)}
		var ahead atomic.Int64
		n := notify.New(notify.Settings{
			Routes: []notify.Route{{Channel: desk}}, Zone: time.UTC, Outbox: outbox, Log: slog.New(slog.DiscardHandler),
			Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }, Random: func() float64 { return 0.5 },
		})
		start(t, n)
		ahead.Store(int64(365 * 24 * time.Hour))
		enqueue(t, n, notice("n1"))
		synctest.Wait()
		ahead.Store(0)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		wantReceived(t, desk, "n1", "n1")
	})
}

// Start and Stop may be called in any order and number, and nothing is sent while stopped.
func TestStartStop(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agency.db")
	synctest.Test(t, func(t *testing.T) {
		desk := &fake{name: "desk"}
		n := newNotifier(openOutbox(t, path), notify.Route{Channel: desk})
		n.Stop()
		enqueue(t, n, notice("before"))
		synctest.Wait()
		wantReceived(t, desk)
		start(t, n)
		start(t, n)
		synctest.Wait()
		wantReceived(t, desk, "before")
		n.Stop()
		n.Stop()
		enqueue(t, n, notice("between"))
		synctest.Wait()
		wantReceived(t, desk, "before")
		start(t, n)
		synctest.Wait()
		wantReceived(t, desk, "before", "between")
	})
}

// A stop interrupts a hanging send, which does not count as a try.
func TestStopCutsOff(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agency.db")
	synctest.Test(t, func(t *testing.T) {
		slow := &fake{name: "slow", do: hangs}
		outbox := openOutbox(t, path)
		n := newNotifier(outbox, notify.Route{Channel: slow})
		start(t, n)
		enqueue(t, n, notice("n1"))
		synctest.Wait()
		began := time.Now()
		n.Stop()
		if passed := time.Since(began); passed != 0 {
			t.Errorf("the stop took %s", passed)
		}
		found, err := outbox.Dispatches(context.Background(), "n1")
		if err != nil || len(found) != 1 || found[0].Tries != 0 || found[0].Settled() {
			t.Errorf("%+v, %v", found, err)
		}
	})
}

// A test reports its result for each channel.
func TestTest(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agency.db")
	synctest.Test(t, func(t *testing.T) {
		good := notify.Route{Channel: &fake{name: "good"}, Kinds: []string{"worker.lost"}}
		bad := notify.Route{Channel: &fake{name: "bad", do: never}}
		n := newNotifier(openOutbox(t, path), good, bad, notify.Route{Channel: &fake{name: "flaky", do: sometimes(1)}})
		start(t, n)
		got, err := n.Test(context.Background(), notice("t1"), "")
		words := []string{}
		for i := range got {
			words = append(words, fmt.Sprintf("%s %v %d %s", got[i].Channel, got[i].SentAt != nil, got[i].Tries, got[i].Error))
		}
		if want := []string{"bad false 3 not ever", "flaky true 2 not now", "good true 1 "}; err != nil || !slices.Equal(words, want) {
			t.Errorf("%q, %v", words, err)
		}
		if got, err := n.Test(context.Background(), notice("t2"), "good"); err != nil || len(got) != 1 || got[0].SentAt == nil {
			t.Errorf("%+v, %v", got, err)
		}
		_, err = n.Test(context.Background(), notice("t3"), "god")
		if !agency.IsCode(err, agency.CodeUsage) || !strings.Contains(agency.AsError(err).Hint, "agency notify test good") {
			t.Errorf("%v", err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second/2)
		defer cancel()
		if got, err := n.Test(ctx, notice("t4"), "bad"); err != nil || len(got) != 1 || got[0].Settled() || got[0].Tries != 1 {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

func TestNoChannels(t *testing.T) {
	t.Parallel()
	n := newNotifier(openOutbox(t, filepath.Join(t.TempDir(), "agency.db")))
	start(t, n)
	if to, err := n.Enqueue(context.Background(), notice("n1")); err != nil || len(to) != 0 {
		t.Errorf("%q, %v", to, err)
	}
	if _, err := n.Test(context.Background(), notice("n1"), ""); !agency.IsCode(err, agency.CodeUsage) || agency.AsError(err).Hint == "" {
		t.Error(err)
	}
}

// Without a route an alert is shown once, and no reminder of it; in quiet hours nothing is.
func TestUnrouted(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 4)
	show := func(_ context.Context, text string) (int, error) {
		seen <- text
		return 0, nil
	}
	settings := notify.Settings{
		Unrouted: notify.NewTerminals(show, nil), Zone: time.UTC, Outbox: openOutbox(t, filepath.Join(t.TempDir(), "agency.db")),
		Log: slog.New(slog.DiscardHandler), Now: time.Now,
	}
	n := notify.New(settings)
	start(t, n)
	reminder := notice("n2")
	reminder.Reminder = true
	last := notice("n3")
	last.Body = "exit\n2"
	enqueue(t, n, notice("n1"), reminder, last)
	for _, want := range []string{"agency: fix-login failed: exit 1", "agency: fix-login failed: exit 2"} {
		if got := <-seen; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	settings.Routes = []notify.Route{{Channel: &fake{name: "desk"}}}
	routed := notify.New(settings)
	start(t, routed)
	enqueue(t, routed, notice("n4"))
	n.Stop()
	routed.Stop()
	if len(seen) > 0 {
		t.Errorf("%q is shown too", <-seen)
	}
}

// The terminals ring once for each alert that they show, and not for its reminders.
func TestUnroutedRings(t *testing.T) {
	t.Parallel()
	screen, tty, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = screen.Close(); _ = tty.Close() }()
	show := func(_ context.Context, text string) (int, error) {
		_, err := tty.WriteString("[" + text + "]")
		return 1, err
	}
	terminals := func(context.Context) ([]string, error) { return []string{tty.Name()}, nil }
	n := notify.New(notify.Settings{
		Unrouted: notify.NewTerminals(show, terminals), Zone: time.UTC, Outbox: openOutbox(t, filepath.Join(t.TempDir(), "agency.db")),
		Log: slog.New(slog.DiscardHandler), Now: time.Now,
	})
	start(t, n)
	again, other := notice("n2"), notice("n3")
	again.Reminder = true
	other.Body = "exit 2"
	enqueue(t, n, notice("n1"), again, other)
	if err := screen.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	want := "[agency: fix-login failed: exit 1]\a[agency: fix-login failed: exit 2]\a"
	got := make([]byte, len(want))
	if n, err := io.ReadFull(screen, got); err != nil || string(got) != want {
		t.Errorf("the terminal shows %q, %v, want %q", got[:n], err, want)
	}
	n.Stop()
}

// broken is an outbox that cannot write for a while.
type broken struct {
	*sqlite.Store
	fails int
}

func (b *broken) RecordDispatch(ctx context.Context, d *agency.Dispatch) error {
	if b.fails--; b.fails >= 0 {
		return errors.New("the disk is full")
	}
	return b.Store.RecordDispatch(ctx, d)
}

// While a success cannot be recorded, nothing is sent twice.
func TestBrokenOutbox(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agency.db")
	synctest.Test(t, func(t *testing.T) {
		desk := &fake{name: "desk"}
		n := newNotifier(&broken{openOutbox(t, path), 10}, notify.Route{Channel: desk})
		start(t, n)
		enqueue(t, n, notice("n1"), notice("n2"))
		time.Sleep(time.Hour)
		synctest.Wait()
		wantReceived(t, desk, "n1", "n2")
	})
}
