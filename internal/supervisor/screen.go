package supervisor

import (
	"context"
	"time"

	"agency"
	"agency/internal/supervisor/observe"
)

// Times of a client that watches a screen. Nothing is done for a screen without one.
const (
	screenEvery  = 50 * time.Millisecond  // how often to look whether the agent wrote
	screenSettle = 250 * time.Millisecond // a terminal draws what was written after it is in the log
	screenAnyway = 2 * time.Second        // when to capture a terminal again whose agent wrote nothing: it may have another size
)

// Screen returns what the terminal of a run shows as soon as that differs from the revision that a
// client has seen. At the end of ctx it returns the last screen with the error of ctx.
func (q *Query) Screen(ctx context.Context, ref, seen string, history int) (*agency.Run, agency.Screen, error) {
	reading := context.WithoutCancel(ctx) // it is short, and a capture that is cut off looks like a terminal that is gone
	r, err := q.store.Resolve(reading, ref)
	if err != nil {
		return nil, agency.Screen{}, err
	}
	tick := time.NewTicker(screenEvery)
	defer tick.Stop()
	for {
		wrote, begun := observe.Wrote(r), time.Now()
		screen := q.terminals.Screen(reading, r, history)
		if screen.Revision != seen {
			return r, screen, nil
		}
		for again := screenSettle; ; {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return r, screen, ctx.Err()
			}
			if observe.Wrote(r) != wrote {
				break
			}
			if time.Since(begun) >= again {
				if again == screenAnyway {
					break
				}
				again = screenAnyway
				if now := q.terminals.Screen(reading, r, history); now.Revision != seen {
					return r, now, nil
				}
			}
		}
		if r, err = q.store.Run(reading, r.ID); err != nil { // it may have another attempt
			return nil, agency.Screen{}, err
		}
	}
}
