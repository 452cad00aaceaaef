package daemon

import (
	"context"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/config"
	"agency/internal/sqlite"
	"agency/internal/supervisor"
)

// recordOperations serve the operations on the record itself: its events, its check and its backup.
type recordOperations struct {
	sup   *supervisor.Supervisor
	store *sqlite.Store
	cfg   *config.Config
	now   func() time.Time
}

func (o recordOperations) listEvents(ctx context.Context, req api.ListEventsRequest) (api.ListEventsResponse, error) {
	var run agency.RunID
	if req.Run != "" {
		r, err := o.sup.Records.Resolve(ctx, req.Run)
		if err != nil {
			return api.ListEventsResponse{}, err
		}
		run = r.ID
	}
	limit := req.Limit
	if limit <= 0 || limit > eventPage {
		limit = eventPage
	}
	return readEvents(ctx, o.store, req.Since, run, limit)
}

// eventRecord is what readEvents needs of the store.
type eventRecord interface {
	Events(ctx context.Context, since int64, run agency.RunID, limit int) ([]agency.Event, error)
	LastSeq(ctx context.Context) (int64, error)
}

// readEvents returns the events after a given one, of one run or of all, and the number of the newest
// event. It reads that number first: a client that has all events of the list and follows those after
// the number misses none that is recorded meanwhile.
func readEvents(ctx context.Context, record eventRecord, since int64, run agency.RunID, limit int) (api.ListEventsResponse, error) {
	last, err := record.LastSeq(ctx)
	if err != nil {
		return api.ListEventsResponse{}, err
	}
	events, err := record.Events(ctx, since, run, limit)
	if err != nil {
		return api.ListEventsResponse{}, err
	}
	if len(events) > 0 {
		last = max(last, events[len(events)-1].Seq)
	}
	return api.ListEventsResponse{Events: append([]agency.Event{}, events...), LastSeq: last}, nil
}
