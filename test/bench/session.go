package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"agency/internal/api"
)

//go:embed status_lock.py
var statusLock []byte

// ahead is the number of updates that a writer may have sent without an answer.
const ahead = 8

// updating is the sum of what all writers of updates did.
type updating struct {
	seconds float64
	counts  []int // by writer
	took    samples
	lost    int
	torn    int
}

func (u *updating) total() (n int) {
	for _, c := range u.counts {
		n += c
	}
	return n
}

func (u *updating) rate() float64 { return float64(u.total()) / u.seconds }

// fairness returns the updates of the slowest writer divided by those of the fastest.
func (u *updating) fairness() float64 {
	return float64(slices.Min(u.counts)) / float64(max(slices.Max(u.counts), 1))
}

// measureSessions has processes report on the agents of a session, each over one connection to
// agency, and in the same minutes each by the file protocol that agency replaces.
func measureSessions(ctx context.Context, b *bench) (err error) {
	w, repo, err := newWorldWith(ctx, b, 100)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.startDaemon(ctx); err != nil {
		return err
	}
	python, _ := exec.LookPath("python3")
	if python == "" {
		fmt.Println("no python3: there is nothing to compare session updates with")
	}
	for _, agents := range []int{5, 100, 1000} {
		for _, writers := range []int{1, 4, 16} {
			if err := compareUpdates(ctx, b, w, repo, python, agents, writers); err != nil {
				return err
			}
		}
	}
	return oneByOne(ctx, b, w, repo)
}

// compareUpdates alternates between the two, so that both run under the same load.
func compareUpdates(ctx context.Context, b *bench, w *world, repo, python string, agents, writers int) error {
	seconds := time.Duration(b.reps(2000, 500)) * time.Millisecond
	var ours, theirs []updating
	for range b.reps(3, 1) {
		u, err := reportUpdates(ctx, w, repo, agents, writers, ahead, seconds)
		if err != nil {
			return err
		}
		ours = append(ours, u)
		if python == "" {
			continue
		}
		if u, err = lockUpdates(ctx, b, w, python, agents, writers, seconds); err != nil {
			return err
		}
		theirs = append(theirs, u)
	}
	what := fmt.Sprintf("%d agents, %d writers: ", agents, writers)
	if writers == 1 {
		what = fmt.Sprintf("%d agents, 1 writer: ", agents)
	}
	mine := middle(ours)
	beside, ratio, gain := "", "", 0.0
	if len(theirs) > 0 {
		file := middle(theirs)
		beside = fmt.Sprintf("%.0f/s by files, p99 %s, least/most %.2f", file.rate(), ms(file.took.at(0.99)), file.fairness())
		gain = mine.rate() / file.rate()
		ratio = fmt.Sprintf("%.1fx", gain)
	}
	limit := atLeast(5, "x")
	if agents < 100 {
		limit = atLeast(1, "x")
	}
	if len(theirs) == 0 {
		limit = nil
	}
	b.table.add(row{what: what + "updates", got: fmt.Sprintf("%.0f/s", mine.rate()), beside: beside, ratio: ratio}, gain, limit)
	limit = nil
	if writers == 16 {
		limit = atMost(50, " ms")
	}
	p99 := mine.took.at(0.99)
	b.table.add(row{what: what + "each", got: fmt.Sprintf("p50 %s, p99 %s", ms(mine.took.median()), ms(p99))}, inMS(p99), limit)
	if writers > 1 {
		b.table.add(row{what: what + "least/most", got: fmt.Sprintf("%.2f", mine.fairness())}, mine.fairness(), atLeast(0.5, ""))
	}
	bad := 0
	for i := range ours {
		bad += ours[i].lost + ours[i].torn
	}
	verdict := "= 0: pass"
	if bad > 0 {
		b.table.missed++
		verdict = "= 0: missed"
	}
	b.table.add(row{what: what + "lost, torn", got: strconv.Itoa(bad), bar: verdict}, 0, nil)
	return nil
}

// oneByOne measures one writer that waits for each answer: nearly only the time of a durable write.
func oneByOne(ctx context.Context, b *bench, w *world, repo string) error {
	u, err := reportUpdates(ctx, w, repo, 100, 1, 1, time.Duration(b.reps(2000, 500))*time.Millisecond)
	if err != nil {
		return err
	}
	b.table.add(row{what: "100 agents, 1 writer that waits for each answer", got: fmt.Sprintf("%.0f/s, p99 %s", u.rate(), ms(u.took.at(0.99)))}, 0, nil)
	return nil
}

// middle returns the pass with the median rate.
func middle(passes []updating) *updating {
	sorted := slices.SortedFunc(slices.Values(passes), func(a, b updating) int { return int(a.rate() - b.rate()) })
	return &sorted[len(sorted)/2]
}

// lockUpdates measures the file protocol.
func lockUpdates(ctx context.Context, b *bench, w *world, python string, agents, writers int, d time.Duration) (updating, error) {
	dir, err := os.MkdirTemp(b.root, "lock")
	if err != nil {
		return updating{}, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	script := filepath.Join(dir, "status_lock.py")
	if err := os.WriteFile(script, statusLock, 0o600); err != nil {
		return updating{}, err
	}
	session := filepath.Join(dir, "20260201-143022-abc12345")
	torn, stop := watchFile(filepath.Join(session, "status.json"))
	out, err := w.run(ctx, dir, python, script, session, strconv.Itoa(agents), strconv.Itoa(writers), fmt.Sprint(d.Seconds()))
	stop()
	if err != nil {
		return updating{}, err
	}
	var said struct {
		Seconds float64         `json:"seconds"`
		Counts  []int           `json:"counts"`
		Took    []time.Duration `json:"took_ns"`
		Lost    int             `json:"lost"`
	}
	if err := json.Unmarshal(out, &said); err != nil {
		return updating{}, fmt.Errorf("read what the file protocol did: %w", err)
	}
	return updating{seconds: said.Seconds, counts: said.Counts, took: said.Took, lost: said.Lost, torn: *torn}, nil
}

// reportUpdates makes a session and has writers report on its agents, each a process of the program
// with one connection.
func reportUpdates(ctx context.Context, w *world, repo string, agents, writers, window int, d time.Duration) (updating, error) {
	list := make([]string, agents)
	for i := range list {
		list[i] = fmt.Sprintf(`{"id":"%03d","name":"%03d-task-number-%d","prompt_path":"prompts/demo/%03d-task-number-%d.md","wave":1,"model":"claude"}`, i+1, i+1, i+1, i+1, i+1)
	}
	out, err := w.run(ctx, repo, w.agency, "session", "create", "--json", "--agents", "["+strings.Join(list, ",")+"]")
	if err != nil {
		return updating{}, err
	}
	var made struct {
		Data api.SessionResponse `json:"data"`
	}
	if err := json.Unmarshal(out, &made); err != nil {
		return updating{}, fmt.Errorf("read the answer of session create: %w", err)
	}
	s := &made.Data.Session
	crew := make([]*writer, writers)
	for i := range crew {
		if crew[i], err = startWriter(ctx, w, repo, s.Ref(), fmt.Sprintf("%03d", 1+i*agents/writers), window); err != nil {
			return updating{}, err
		}
		defer crew[i].end()
	}
	before, err := api.Call(ctx, w.client, api.DaemonStatus, api.Empty{})
	if err != nil {
		return updating{}, err
	}
	torn, stop := watchFile(filepath.Join(s.Dir, "status.json"))
	u := updating{counts: make([]int, writers)}
	errs := make([]error, writers)
	begin := time.Now()
	var wg sync.WaitGroup
	for i, c := range crew {
		wg.Go(func() { errs[i] = c.write(begin.Add(d)) })
	}
	wg.Wait()
	u.seconds = time.Since(begin).Seconds()
	stop()
	for i, c := range crew {
		u.counts[i] = len(c.took)
		u.took = append(u.took, c.took...)
	}
	if err := errors.Join(errs...); err != nil {
		return u, err
	}
	after, err := api.Call(ctx, w.client, api.DaemonStatus, api.Empty{})
	if err != nil {
		return u, err
	}
	u.lost, u.torn = u.total()-int(after.LastSeq-before.LastSeq), *torn // each update is one event
	// The session is not wedged: it ends, and can be removed.
	for _, args := range [][]string{{"update", s.Ref(), "cancel"}, {"rm", s.Ref()}} {
		if _, err := w.run(ctx, repo, append([]string{w.agency, "session"}, args...)...); err != nil {
			return u, err
		}
	}
	return u, nil
}

// writer is a process that reports on one agent.
type writer struct {
	cmd    *exec.Cmd
	in     *bufio.Writer
	out    *bufio.Scanner
	end    func()
	agent  string
	window int
	took   samples
}

func startWriter(ctx context.Context, w *world, repo, session, agent string, window int) (*writer, error) {
	cmd := exec.CommandContext(ctx, w.agency, "session", "update", session, "-", "--json")
	cmd.Dir, cmd.Env, cmd.Stderr = repo, w.env, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &writer{cmd: cmd, in: bufio.NewWriter(in), out: bufio.NewScanner(out), agent: agent, window: window}
	c.end = func() { _ = in.Close(); _ = cmd.Wait() }
	return c, c.once() // it is connected
}

// once reports and waits for the answer, unmeasured.
func (c *writer) once() error {
	if _, err := fmt.Fprintf(c.in, `{"agent":%q,"action":"start"}`+"\n", c.agent); err != nil {
		return err
	}
	if err := c.in.Flush(); err != nil {
		return err
	}
	return c.answer()
}

func (c *writer) answer() error {
	if !c.out.Scan() {
		return fmt.Errorf("the writer of agent %s ended: %w", c.agent, c.out.Err())
	}
	if !strings.HasPrefix(c.out.Text(), `{"ok":true`) {
		return fmt.Errorf("an update of agent %s was refused: %s", c.agent, c.out.Text())
	}
	return nil
}

// write reports until the end, never more than the window ahead of the answers, and waits for the
// last answer.
func (c *writer) write(end time.Time) error {
	sent := make(chan time.Time, c.window)
	failed := make(chan error, 1)
	slots := make(chan struct{}, c.window)
	go func() {
		defer close(failed)
		for at := range sent {
			if err := c.answer(); err != nil {
				failed <- err
				return
			}
			c.took = append(c.took, time.Since(at))
			<-slots
		}
	}()
	var err error
	for n := 1; err == nil && time.Now().Before(end); n++ {
		select {
		case slots <- struct{}{}:
		default:
			if err = c.in.Flush(); err != nil {
				break
			}
			select {
			case slots <- struct{}{}:
			case err = <-failed:
				return err
			}
		}
		sent <- time.Now()
		_, err = fmt.Fprintf(c.in, `{"agent":%q,"action":"start","pid":%d}`+"\n", c.agent, n)
	}
	close(sent)
	return errors.Join(err, c.in.Flush(), <-failed)
}

// watchFile reads a status file again and again until stop, and counts the readings that were not a
// document.
func watchFile(path string) (torn *int, stop func()) {
	torn = new(int)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-time.After(50 * time.Millisecond):
			case <-done:
				return
			}
			data, err := os.ReadFile(path)
			if err != nil {
				continue // it is not made yet
			}
			if !json.Valid(data) {
				*torn++
			}
		}
	}()
	return torn, func() { close(done); <-ended }
}
