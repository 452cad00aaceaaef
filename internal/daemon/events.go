package daemon

import (
	"context"

	"agency"
	"agency/internal/api"
)

func (d *Daemon) listEvents(ctx context.Context, req api.ListEventsRequest) (api.ListEventsResponse, error) {
	var run agency.RunID
	if req.Run != "" {
		r, err := d.sup.Records.Resolve(ctx, req.Run)
		if err != nil {
			return api.ListEventsResponse{}, err
		}
		run = r.ID
	}
	limit := req.Limit
	if limit <= 0 || limit > eventPage {
		limit = eventPage
	}
	events, err := d.store.Events(ctx, req.Since, run, limit)
	if err != nil {
		return api.ListEventsResponse{}, err
	}
	last, err := d.store.LastSeq(ctx)
	if err != nil {
		return api.ListEventsResponse{}, err
	}
	return api.ListEventsResponse{Events: append([]agency.Event{}, events...), LastSeq: last}, nil
}
