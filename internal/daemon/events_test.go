package daemon

import (
	"context"
	"testing"

	"agency"
)

// busyRecord records another event after each read.
type busyRecord struct{ newest int64 }

func (b *busyRecord) LastSeq(context.Context) (int64, error) {
	defer func() { b.newest++ }()
	return b.newest, nil
}

func (b *busyRecord) Events(_ context.Context, since int64, _ agency.RunID, limit int) ([]agency.Event, error) {
	defer func() { b.newest++ }()
	events := []agency.Event{}
	for seq := since + 1; seq <= b.newest && len(events) < limit; seq++ {
		events = append(events, agency.Event{Seq: seq})
	}
	return events, nil
}

// A client that has the list and follows the events after its last_seq sees every event once, also
// those that are recorded while the daemon reads.
func TestEventsWithoutAGap(t *testing.T) {
	t.Parallel()
	resp, err := readEvents(t.Context(), &busyRecord{newest: 3}, 0, "", 10)
	if err != nil || len(resp.Events) == 0 || resp.Events[len(resp.Events)-1].Seq != resp.LastSeq {
		t.Errorf("%d events, the last number is %d, %v", len(resp.Events), resp.LastSeq, err)
	}
	if resp, err = readEvents(t.Context(), &busyRecord{newest: 3}, 0, "", 2); err != nil || len(resp.Events) != 2 || resp.LastSeq != 3 {
		t.Errorf("%d events, the last number is %d, %v", len(resp.Events), resp.LastSeq, err)
	}
}
