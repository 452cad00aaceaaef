package watchdog

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"agency"
)

// lookAtHost checks the disks and returns when to check again: after an interval, or earlier when a
// notification is due.
func (w *Watchdog) lookAtHost(ctx context.Context) (next time.Time) {
	now := w.Now()
	next = now.Add(w.current().Poll)
	at, err := w.lookAtDisks(ctx, now)
	if err != nil && ctx.Err() == nil {
		w.Log.Error("look at the disks", "err", err)
	}
	w.tick()
	return sooner(next, at)
}

// lookAtDisks updates the episodes about disks to their free space and returns when the next
// notification of one is due. If the disks cannot be read, everything stays as it is.
func (w *Watchdog) lookAtDisks(ctx context.Context, now time.Time) (next time.Time, err error) {
	disks, err := w.Disks()
	if err != nil {
		return time.Time{}, err
	}
	episodes, err := w.lowDisks(ctx, disks, now)
	if err != nil {
		return time.Time{}, err
	}
	for i := range episodes {
		at, err := w.remind(ctx, &episodes[i], now, func(notifying *agency.Alert) ([]string, error) { return w.Sink.DeliverHost(ctx, notifying) })
		if err != nil {
			return time.Time{}, err
		}
		next = sooner(next, at)
	}
	return next, nil
}

// lowDisks resolves the episodes that are over, opens those that begin, and returns all that are
// then open.
func (w *Watchdog) lowDisks(ctx context.Context, disks []agency.Disk, now time.Time) ([]agency.Alert, error) {
	open, err := w.Store.Alerts(ctx, agency.AlertFilter{Host: true})
	if err != nil {
		return nil, err
	}
	episodes := []agency.Alert{}
	for i := range open {
		low := slices.ContainsFunc(disks, func(d agency.Disk) bool { return d.Path == open[i].Cause && d.Low(true) })
		if low {
			episodes = append(episodes, open[i])
		} else if err := w.resolve(ctx, &open[i]); err != nil {
			return nil, err
		}
	}
	for i := range disks {
		d := &disks[i]
		if !d.Low(false) || slices.ContainsFunc(episodes, func(a agency.Alert) bool { return a.Cause == d.Path }) {
			continue
		}
		data, err := json.Marshal(map[string]any{"path": d.Path, "free_bytes": d.Free, "least_bytes": d.Least, "text": d.Words()})
		if err != nil {
			return nil, fmt.Errorf("encode alert of the disk of %s: %w", d.Path, err)
		}
		a := agency.Alert{ID: w.NewID(), Kind: agency.AlertHostDisk, Cause: d.Path, Payload: data, OpenedAt: now, Recipients: []string{}}
		if _, err := w.Store.OpenAlert(ctx, &a); err != nil {
			return nil, err
		}
		episodes = append(episodes, a)
	}
	return episodes, nil
}
