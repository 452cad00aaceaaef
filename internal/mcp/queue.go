package mcp

import (
	"context"
	"errors"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agency/internal/api"
)

// addQueue serves the tools about landing queues.
func (s *Server) addQueue(tools *toolset) error {
	type adding struct {
		Runs []string `json:"runs" jsonschema:"names, handles or ids of runs that you started, in the order of landing"`
		Into string   `json:"into,omitempty" jsonschema:"the branch; default: the one that the run began at, or the current one"`
	}
	type showing struct {
		Run  string `json:"run,omitempty" jsonschema:"only this run, and what became of it"`
		Into string `json:"into,omitempty" jsonschema:"only the queue of this branch"`
	}
	return errors.Join(
		add(tools, api.AddToQueue, func(ctx context.Context, _ *sdk.CallToolRequest, in adding) (any, error) {
			req := api.AddToQueueRequest{Into: in.Into, Dir: s.Dir, Env: s.Env, Config: s.Config}
			for _, ref := range in.Runs {
				r, err := s.find(ctx, ref)
				if err != nil {
					return nil, err
				}
				req.Runs = append(req.Runs, string(r.ID))
			}
			return queued(api.Call(ctx, s.Client, api.AddToQueue, req))
		}),
		add(tools, api.ListQueue, func(ctx context.Context, _ *sdk.CallToolRequest, in showing) (any, error) {
			req := api.ListQueueRequest{Dir: s.scope(), Into: in.Into}
			if in.Run != "" {
				r, err := s.find(ctx, in.Run)
				if err != nil {
					return nil, err
				}
				req.Run = string(r.ID)
			}
			return queued(api.Call(ctx, s.Client, api.ListQueue, req))
		}),
	)
}

// queued returns entries of queues, for a model.
func queued(resp api.QueueResponse, err error) (any, error) {
	type entry struct {
		Run      string `json:"run"`
		Into     string `json:"into"`
		State    string `json:"state"`
		Position int    `json:"position,omitempty"`
		Why      string `json:"why,omitempty"`
	}
	entries := make([]entry, 0, len(resp.Entries))
	for i := range resp.Entries {
		item := &resp.Entries[i]
		entries = append(entries, entry{item.Entry.Run, item.Entry.Target, string(item.Entry.State), item.Position, item.Why})
	}
	return map[string]any{"entries": entries}, err
}
