package daemon

import (
	"context"
	"time"

	"agency"
	"agency/internal/schedule"
	"agency/internal/scheduler"
	"agency/internal/session"
	"agency/internal/sqlite"
)

// startsAtOnce is how many runs the scheduler starts at once: making worktrees uses all cores and
// the disk.
const startsAtOnce = 4

// The scheduler's record is the store.
var _ scheduler.Store = (*sqlite.Store)(nil)

func (d *Daemon) newLandings() *session.Landings {
	return &session.Landings{
		Store: d.store, Runs: d.sup.Records, Finder: d.finder, Lander: d.lander, Queuer: d.queuer, Passes: passing(d.verifier),
		FlagConflict: d.sup.Marks.FlagConflict, Log: d.Log,
	}
}

func (d *Daemon) newScheduler() *scheduler.Scheduler {
	return scheduler.New(scheduler.Deps{
		Store: d.store, Runs: d.agents(), Lander: d.landings, Log: d.Log, Now: d.clock.Now, Elapsed: d.clock.Elapsed, Random: fillRandom,
	}, scheduler.Settings{Home: d.Config.Home, Starts: startsAtOnce, Retry: schedule.DefaultRetryPolicy()})
}

func (d *Daemon) newFiles() *scheduler.Files {
	return scheduler.NewFiles(scheduler.FilesDeps{
		Store: d.store, Log: d.Log, Now: d.clock.Now, Home: d.Config.Home, Exclude: d.sup.Repos.Exclude,
	})
}

// newResults returns the service that determines the results of sessions.
func (d *Daemon) newResults() *scheduler.Results {
	messenger := session.Messenger{Owner: d.sup.Inbox.SendToOwner, Now: d.clock.Now, Notify: func(ctx context.Context, n agency.Notice) error {
		_, err := d.notifier.Load().Enqueue(ctx, n)
		return err
	}}
	return scheduler.NewResults(scheduler.ResultDeps{
		Store: d.store, Ended: d.sup.Query.Ended, Facts: d.sup.Query.Result, Notify: messenger.Send, Log: d.Log, Now: d.clock.Now,
	})
}

func (d *Daemon) agents() session.Agents {
	return session.Agents{Deps: session.Deps{
		Store: d.store, Git: d.git, Runs: d.sup, Query: d.sup.Query, Observer: d.sup.Observer, Terminals: d.sup.Terminals, Repos: d.sup.Repos, Projects: d.sup.Projects, Log: d.Log,
	}}
}

func (d *Daemon) newSessions() *session.Sessions {
	return &session.Sessions{
		Deps: d.agents().Deps, Scheduler: d.sched, Files: d.files, Finder: d.finder, Policy: d.policy,
		Poll: func() time.Duration { return d.active.config().Watchdog.PollInterval }, Now: d.clock.Now, Elapsed: d.clock.Elapsed, Random: fillRandom,
	}
}
