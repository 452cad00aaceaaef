package notify_test

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"agency"
)

// memory is an outbox that outlives the notifiers of a test, as a file outlives processes, but
// faster.
type memory struct {
	mu   sync.Mutex
	rows []agency.Dispatch
}

func (m *memory) AddDispatches(_ context.Context, n *agency.Notice, channels []string, due time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, channel := range channels {
		if !slices.ContainsFunc(m.rows, func(d agency.Dispatch) bool { return d.Notice.ID == n.ID && d.Channel == channel }) {
			m.rows = append(m.rows, agency.Dispatch{Notice: *n, Channel: channel, DueAt: due})
		}
	}
	return nil
}

func (m *memory) NextDispatch(_ context.Context, channel string, now, latest time.Time) (*agency.Dispatch, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	waiting := slices.DeleteFunc(slices.Clone(m.rows), func(d agency.Dispatch) bool { return d.Channel != channel || d.Settled() })
	if len(waiting) == 0 {
		return nil, nil
	}
	wait := func(d *agency.Dispatch) time.Duration {
		if d.DueAt.After(latest) {
			return 0
		}
		return max(0, d.DueAt.Sub(now))
	}
	slices.SortStableFunc(waiting, func(a, b agency.Dispatch) int {
		return cmp.Or(cmp.Compare(wait(&a), wait(&b)), cmp.Compare(a.Tries, b.Tries))
	})
	return &waiting[0], nil
}

func (m *memory) RecordDispatch(_ context.Context, d *agency.Dispatch) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.rows {
		if row := &m.rows[i]; row.Notice.ID == d.Notice.ID && row.Channel == d.Channel && !row.Settled() {
			*row = *d
		}
	}
	return nil
}

func (m *memory) Dispatches(_ context.Context, noticeID string) ([]agency.Dispatch, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(m.rows), func(d agency.Dispatch) bool { return d.Notice.ID != noticeID }), nil
}

func (m *memory) TidyOutbox(context.Context, []string, time.Time, time.Time) error { return nil }

func (m *memory) ReleaseDispatches(_ context.Context, now time.Time, due func(d *agency.Dispatch) time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.rows {
		d := &m.rows[i]
		if d.Settled() || !d.DueAt.After(now) {
			continue
		}
		if at := due(d); at.Before(d.DueAt) {
			d.DueAt = at
		}
	}
	return nil
}

func (m *memory) Changed() <-chan struct{} { return nil }
