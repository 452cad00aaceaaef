package mcp

import (
	"context"
	"errors"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agency"
	"agency/internal/api"
)

// How long a tool waits. Clients have their own time limits for tools, so a wait ends earlier and
// the client calls it again.
const (
	usualWait   = 45 * time.Second
	mostWait    = 10 * time.Minute
	tellEvery   = 5 * time.Second // the time between two progress notifications
	mostAwaited = 50
)

func (s *Server) addWaits(tools *toolset) error {
	type waiting struct {
		Runs    []string       `json:"runs" jsonschema:"names, handles or ids"`
		For     []agency.Label `json:"for,omitempty" jsonschema:"wait for one of these statuses instead"`
		All     bool           `json:"all,omitempty" jsonschema:"wait for all runs instead of the first one"`
		Seconds int            `json:"timeout_seconds,omitempty" jsonschema:"default 45, at most 600"`
	}
	return add(tools, api.WaitRuns, func(ctx context.Context, req *sdk.CallToolRequest, in waiting) (any, error) {
		if len(in.Runs) == 0 || len(in.Runs) > mostAwaited {
			return nil, agency.Errorf(agency.CodeUsage, "runs names %d runs; you can wait for 1 to %d", len(in.Runs), mostAwaited)
		}
		wait, err := duration(in.Seconds, usualWait)
		if err != nil {
			return nil, err
		}
		ids := make([]string, 0, len(in.Runs))
		for _, ref := range in.Runs {
			r, err := s.find(ctx, ref)
			if err != nil {
				return nil, err
			}
			ids = append(ids, string(r.ID))
		}
		groups := [][]string{ids}
		if !in.All {
			groups = groups[:0]
			for _, id := range ids {
				groups = append(groups, []string{id})
			}
		}
		stop := reportProgress(ctx, req, wait, "waiting for "+strings.Join(in.Runs, ", "))
		timedOut, err := s.waitFirst(ctx, groups, in.For, wait)
		stop()
		if err != nil {
			return nil, err
		}
		rows := make([]row, 0, len(ids))
		for _, id := range ids {
			r, err := s.find(ctx, id)
			if err != nil {
				return nil, err
			}
			rows = append(rows, newRow(r))
		}
		return map[string]any{"runs": rows, "timed_out": timedOut}, nil
	})
}

// waitFirst waits until all runs of one of the groups have one of the statuses.
func (s *Server) waitFirst(ctx context.Context, groups [][]string, labels []agency.Label, wait time.Duration) (timedOut bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error, len(groups))
	ended := errors.New("timed out")
	for _, group := range groups {
		go func() {
			resp, err := api.Call(ctx, s.Client, api.WaitRuns, api.WaitRunsRequest{Runs: group, For: words(labels), TimeoutMS: wait.Milliseconds()})
			if err == nil && resp.TimedOut {
				err = ended
			}
			done <- err
		}()
	}
	err = <-done // all groups end when the time is up
	if errors.Is(err, ended) {
		return true, nil
	}
	return false, err
}

// duration returns how long to wait, from a number of seconds.
func duration(seconds int, usual time.Duration) (time.Duration, error) {
	switch most := int(mostWait.Seconds()); {
	case seconds == 0:
		return usual, nil
	case seconds < 0 || seconds > most:
		return 0, agency.Errorf(agency.CodeUsage, "%d seconds: a wait is 1 to %d seconds long", seconds, most).
			WithHint("wait again when it is over")
	default:
		return time.Duration(seconds) * time.Second, nil
	}
}

// reportProgress sends progress to a client that asked for it, until stop is called.
func reportProgress(ctx context.Context, req *sdk.CallToolRequest, total time.Duration, text string) (stop func()) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return func() {}
	}
	begin := time.Now()
	notify := func() { // when the client is gone, ctx ends
		_ = req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
			ProgressToken: token, Message: text, Progress: time.Since(begin).Seconds(), Total: total.Seconds(),
		})
	}
	notify() // before the wait begins, since it may end at once
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(tellEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				notify()
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() { cancel(); <-ended }
}
