// Package trace times the steps of one request in all processes that take part in it, and writes
// them for a trace viewer.
package trace

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"agency"
)

// Variable names the file that a command writes its trace into.
const Variable = "AGENCY_TRACE"

// Trace collects spans. It is safe for concurrent use. A nil Trace collects nothing.
type Trace struct {
	process string

	mu    sync.Mutex
	spans []agency.Span
	busy  []bool // by lane
}

// New returns an empty trace of this process, which calls itself process.
func New(process string) *Trace { return &Trace{process: process} }

// Begin begins a span, whose name is the parts with spaces between them. The caller calls end when
// the step is over.
func (t *Trace) Begin(name ...string) (end func()) {
	if t == nil {
		return func() {}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	lane := slices.Index(t.busy, false)
	if lane < 0 {
		lane = len(t.busy)
		t.busy = append(t.busy, true)
	}
	t.busy[lane] = true
	span := agency.Span{Process: t.process, PID: os.Getpid(), Lane: lane + 1, Name: strings.Join(name, " "), Begin: time.Now().UTC()}
	return sync.OnceFunc(func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		span.End = time.Now().UTC()
		t.busy[lane] = false
		t.spans = append(t.spans, span)
	})
}

// Add adds spans that another process timed.
func (t *Trace) Add(spans ...agency.Span) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.spans = append(t.spans, spans...)
}

// Spans returns the spans that have ended, in the order of their ends.
func (t *Trace) Spans() []agency.Span {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.spans)
}

type key struct{}

// With returns a context that carries a trace.
func With(ctx context.Context, t *Trace) context.Context { return context.WithValue(ctx, key{}, t) }

// From returns the trace of a context; nil when the context has none.
func From(ctx context.Context) *Trace {
	t, _ := ctx.Value(key{}).(*Trace)
	return t
}

// Begin begins a span in the trace of a context.
func Begin(ctx context.Context, name ...string) (end func()) { return From(ctx).Begin(name...) }

// event is an entry of Chrome's trace event format. Times are in microseconds.
type event struct {
	Name  string            `json:"name"`
	Phase string            `json:"ph"` // X: a complete step; M: a name
	At    int64             `json:"ts"`
	Took  int64             `json:"dur"`
	PID   int               `json:"pid"`
	Lane  int               `json:"tid"`
	Args  map[string]string `json:"args,omitempty"`
}

// Write writes spans as a JSON array of Chrome trace events. Times count from the first span.
func Write(w io.Writer, spans []agency.Span) error {
	spans = slices.SortedFunc(slices.Values(spans), func(a, b agency.Span) int { return a.Begin.Compare(b.Begin) })
	events, named := []event{}, map[int]bool{}
	for _, s := range spans {
		if !named[s.PID] {
			named[s.PID] = true
			events = append(events, event{Name: "process_name", Phase: "M", PID: s.PID, Args: map[string]string{"name": s.Process}})
		}
		events = append(events, event{
			Name: s.Name, Phase: "X", At: s.Begin.Sub(spans[0].Begin).Microseconds(), Took: s.End.Sub(s.Begin).Microseconds(), PID: s.PID, Lane: s.Lane,
		})
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	return enc.Encode(events)
}
