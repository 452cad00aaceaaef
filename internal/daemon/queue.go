package daemon

import (
	"context"
	"slices"

	"agency"
	"agency/internal/api"
	"agency/internal/config"
	"agency/internal/policy"
	"agency/internal/queue"
	"agency/internal/queuer"
	"agency/internal/session"
	"agency/internal/sqlite"
	"agency/internal/supervisor"
)

// newQueuer returns the queuer of this daemon.
func (d *Daemon) newQueuer() *queuer.Queuer {
	fixups := session.Fixups{Runs: d.sup, Projects: d.sup.Projects, Spec: d.sup.Records.Spec, Config: d.active.config, Log: d.Log}
	return queuer.New(queuer.Deps{
		Store: d.store, Lander: d.lander, Verifier: d.verifier, Runs: d.sup.Records, Repos: d.sup.Repos, Status: d.sup.Observer.Derive,
		Input: d.sup.Input, Inbox: d.sup.Inbox, Flag: d.sup.Marks.FlagChecks,
		FlagConflict: func(ctx context.Context, id agency.RunID, reason string) error {
			return d.sup.Marks.FlagConflict(ctx, string(id), reason)
		},
		Resume: fixups.Resume, Begin: fixups.Begin,
		Settings: func() queuer.Settings {
			cfg := d.active.config()
			return queuer.Settings{Batch: cfg.Queue.Batch, Parallel: cfg.Queue.Parallel, Approve: cfg.Queue.Approve == config.ApproveAgents, Deny: cfg.Env.Deny}
		},
		Home: d.Config.Home, Log: d.Log,
	})
}

// queueOperations serve the operations on landing queues.
type queueOperations struct {
	sup      *supervisor.Supervisor
	store    *sqlite.Store
	queuer   *queuer.Queuer
	policy   *policy.Policy
	sessions *session.Landings
}

func (o queueOperations) add(ctx context.Context, req api.AddToQueueRequest) (api.QueueResponse, error) {
	if (len(req.Runs) == 0) == (req.Session == "") {
		return api.QueueResponse{}, agency.Errorf(agency.CodeUsage, "name runs, or a session")
	}
	if _, err := o.policy.Permission(ctx, &req.Config, &req.Env); err != nil {
		return api.QueueResponse{}, err
	}
	by, err := o.policy.Caller(ctx)
	if err != nil {
		return api.QueueResponse{}, err
	}
	if req.Session != "" {
		_, final, _, err := o.sessions.Finals(ctx, req.Session, req.Dir)
		if err != nil {
			return api.QueueResponse{}, err
		}
		for _, r := range final {
			req.Runs = append(req.Runs, string(r.ID))
		}
	}
	items, err := o.queuer.Add(ctx, &queuer.AddRequest{Runs: req.Runs, Into: req.Into, By: by, Approve: req.Approve, Env: req.Env})
	return o.changed(ctx, items, err)
}

func (o queueOperations) change(ctx context.Context, req api.ChangeQueueRequest) (api.QueueResponse, error) {
	change := queuer.Change(req.Change)
	if !slices.Contains([]queuer.Change{queuer.Hold, queuer.Resume, queuer.Retry, queuer.Remove}, change) {
		return api.QueueResponse{}, agency.Errorf(agency.CodeUsage, "%q is not a change of an entry", req.Change).WithHint("one of: hold, resume, retry, remove")
	}
	if _, err := o.policy.Permission(ctx, &req.Config, &req.Env); err != nil {
		return api.QueueResponse{}, err
	}
	items, err := o.queuer.Change(ctx, &queuer.ChangeRequest{Change: change, Runs: req.Runs, Into: req.Into, Env: req.Env})
	return o.changed(ctx, items, err)
}

func (o queueOperations) pause(ctx context.Context, req api.PauseQueueRequest) (api.QueueResponse, error) {
	if _, err := o.policy.Permission(ctx, &req.Config, &req.Env); err != nil {
		return api.QueueResponse{}, err
	}
	repo, err := o.sup.Query.Repo(ctx, req.Dir)
	if err != nil {
		return api.QueueResponse{}, err
	}
	if repo.Fingerprint == "" {
		return api.QueueResponse{}, agency.Errorf(agency.CodeInvalidState, "%s has had no runs, so it has no landing queue", repo.Root).WithHint("agency run")
	}
	refs := []agency.QueueRef{{Repo: repo.Fingerprint, Target: req.Into}}
	if req.Into == "" {
		open, err := o.store.OpenQueues(ctx)
		if err != nil {
			return api.QueueResponse{}, err
		}
		refs = slices.DeleteFunc(open, func(ref agency.QueueRef) bool { return ref.Repo != repo.Fingerprint })
	}
	if len(refs) == 0 {
		return api.QueueResponse{}, agency.Errorf(agency.CodeInvalidState, "no queue of %s has entries", repo.Root).WithHint("name the branch: --into BRANCH")
	}
	for _, ref := range refs {
		if err := o.queuer.Pause(ctx, ref, !req.Resume, req.Env); err != nil {
			return api.QueueResponse{}, err
		}
	}
	resp, err := o.list(ctx, api.ListQueueRequest{Dir: req.Dir, Into: req.Into})
	if err == nil && req.Into != "" && len(resp.Queues) == 0 { // it has no entries
		q, err := o.store.Queue(ctx, refs[0])
		if err != nil {
			return resp, err
		}
		resp.Queues = append(resp.Queues, *q)
	}
	return resp, err
}

// changed returns the entries of a request as they are now.
func (o queueOperations) changed(ctx context.Context, items []queuer.Item, err error) (api.QueueResponse, error) {
	if err != nil {
		return api.QueueResponse{}, err
	}
	all := make([]agency.QueueEntry, 0, len(items))
	for i := range items {
		items[i].Entry.Run = items[i].Run.Ref()
		all = append(all, items[i].Entry)
	}
	return o.explain(ctx, all, false)
}

func (o queueOperations) list(ctx context.Context, req api.ListQueueRequest) (api.QueueResponse, error) {
	filter := agency.QueueFilter{Target: req.Into, Open: !req.All}
	switch {
	case req.Run != "":
		r, err := o.sup.Records.Resolve(ctx, req.Run)
		if err != nil {
			return api.QueueResponse{}, err
		}
		filter.Run, filter.Open = r.ID, false
	case req.Dir != "":
		repo, err := o.sup.Query.Repo(ctx, req.Dir)
		if err != nil {
			return api.QueueResponse{}, err
		}
		if repo.Fingerprint == "" {
			return o.explain(ctx, nil, true)
		}
		filter.Repo = repo.Fingerprint
	}
	all, err := o.store.QueueEntries(ctx, filter)
	if err != nil {
		return api.QueueResponse{}, err
	}
	return o.explain(ctx, all, req.Run == "")
}

// explain returns entries with the reason for the place of each. whole reports whether they include
// all open entries of their queues.
func (o queueOperations) explain(ctx context.Context, all []agency.QueueEntry, whole bool) (api.QueueResponse, error) {
	resp := api.QueueResponse{Entries: make([]api.QueueItem, 0, len(all)), Queues: []agency.Queue{}}
	queues := map[agency.QueueRef]*agency.Queue{}
	moving := map[agency.QueueRef][]agency.QueueEntry{}
	positions := map[int64]int{} // of moving entries, by Seq
	place := func(ref agency.QueueRef, entries []agency.QueueEntry) {
		for i := range entries {
			if e := &entries[i]; e.Repo == ref.Repo && e.Target == ref.Target && e.State.Moving() {
				moving[ref] = append(moving[ref], *e)
				positions[e.Seq] = len(moving[ref])
			}
		}
	}
	for i := range all {
		e := &all[i]
		ref := agency.QueueRef{Repo: e.Repo, Target: e.Target}
		if queues[ref] == nil {
			q, err := o.store.Queue(ctx, ref)
			if err != nil {
				return resp, err
			}
			open := all
			if !whole {
				if open, err = o.store.QueueEntries(ctx, agency.QueueFilter{Repo: e.Repo, Target: e.Target, Open: true}); err != nil {
					return resp, err
				}
			}
			place(ref, open)
			queues[ref] = q
			resp.Queues = append(resp.Queues, *q)
		}
		item := api.QueueItem{Entry: *e, Position: positions[e.Seq]}
		item.Why = queue.Why(e, item.Position, queues[ref], moving[ref])
		resp.Entries = append(resp.Entries, item)
	}
	return resp, nil
}
