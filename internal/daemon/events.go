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
	events, err := o.store.Events(ctx, req.Since, run, limit)
	if err != nil {
		return api.ListEventsResponse{}, err
	}
	last, err := o.store.LastSeq(ctx)
	if err != nil {
		return api.ListEventsResponse{}, err
	}
	return api.ListEventsResponse{Events: append([]agency.Event{}, events...), LastSeq: last}, nil
}
