package observe

import (
	"context"
	"path/filepath"
	"time"

	"agency"
)

// followRetry is how long to wait before looking again for a missing folder of an agent.
const followRetry = time.Second

// followFiles requests file events for the agent's own files.
func (ob *Observer) followFiles(id agency.RunID, kind agency.RunnerKind, agentState *agency.AgentState, process *agency.Process) {
	for _, path := range ob.Harness.Files(kind, agentState, process) {
		ob.mu.Lock()
		_, live := ob.live[id]
		added := live && ob.folders.follow(id, path)
		ob.mu.Unlock()
		if !added {
			continue
		}
		if err := ob.Watcher.Add(filepath.Dir(path)); err != nil {
			ob.folders.unfollow(id, path, followRetry, func() { // the folder is created with the file's first line
				if ob.ctx.Err() == nil {
					ob.followFiles(id, kind, agentState, process)
				}
			})
			continue
		}
		ob.work.Go(func() { ob.follow(ob.ctx, id, path) })
	}
}

// follow reads what is new in one of the agent's own files and adds it to the evidence.
func (ob *Observer) follow(ctx context.Context, id agency.RunID, path string) {
	unlock, err := ob.locks.Lock(ctx, "file "+string(id))
	if err != nil {
		return
	}
	defer unlock()
	ob.ReadEvidence(ctx, id) // what hooks reported so far is older than what the file holds
	l, ok := ob.copyOf(id)
	if !ok {
		return
	}
	r, err := ob.Store.Run(ctx, id)
	if err != nil {
		return
	}
	ob.keep(ctx, &l, ob.Harness.ReadFile(r.Runner.Kind, path, l.agentState))
}
