package queuer

import (
	"context"
	"crypto/sha256"
	"fmt"

	"agency"
	"agency/internal/killpoint"
)

// Beginning is a run that continues the work of one that was removed.
type Beginning struct {
	ID     agency.RunID
	After  *agency.Run // whose runner, settings and owner it gets
	From   string      // the commit with the work
	Prompt string
	Env    []string
}

// fixUp gives a task to a new run that begins at the work of a removed one. The new entry stands
// behind all others and has as many rounds left. After a crash the run and its entry are found
// again by the run's id, which follows from the entry of the removed run.
func (l *line) fixUp(ctx context.Context, e *agency.QueueEntry, r *agency.Run, source string, t *task) (asked agency.Asked, words string, err error) {
	env, err := l.readEnv(l.ref.Repo)
	if err != nil {
		return "", "", err
	}
	id, begun, err := l.successor(ctx, e)
	switch {
	case agency.IsCode(err, agency.CodeRunNotFound):
		begun, err = l.Begin(ctx, &Beginning{
			ID: id, After: r, From: source, Env: env,
			Prompt: "# Finish the work of " + r.Ref() + ", with which your branch begins\n\n" + t.text,
		})
	case err == nil && begun.RemovedAt != nil:
		err = agency.Errorf(agency.CodeInvalidState, "%s is removed, too", begun.Ref())
	case err == nil && begun.Attempt.State == agency.Queued:
		return "", "", agency.Errorf(agency.CodeInvalidState, "the start of %s has neither ended nor been undone yet", begun.Ref())
	}
	if err != nil {
		return agency.AskedUser, "it is removed, and no other run continues its work: " + agency.AsError(err).Message + "; " + t.byHand + " on its branch " + r.Branch, ctx.Err()
	}
	killpoint.At("queue.begun")
	there, err := l.Store.QueueEntries(ctx, agency.QueueFilter{Repo: e.Repo, Target: e.Target, Run: id})
	if err == nil && len(there) == 0 {
		err = l.Store.AddQueueEntry(ctx, &agency.QueueEntry{
			RunID: id, Repo: e.Repo, Target: e.Target, Source: source, State: agency.EntryQueued, Rounds: e.Rounds, By: e.By, InsteadOf: r.ID,
		})
	}
	return agency.AskedRun, "it is removed; a new run continues its work: agency queue explain " + begun.Ref(), err
}

// successor returns the run that continues the work of an entry, or E_RUN_NOT_FOUND, and its id. It
// passes over runs whose creation was cut off by a crash and undone.
func (l *line) successor(ctx context.Context, e *agency.QueueEntry) (agency.RunID, *agency.Run, error) {
	for try := 0; ; try++ {
		id := agency.NewRunID(e.ChangedAt, idBytes(e, try))
		r, err := l.Runs.Resolve(ctx, string(id))
		if err != nil || r.RemovedAt == nil || r.Attempt.Number > 1 || r.Attempt.EndedBy != agency.EndedByStartFailed {
			return id, r, err
		}
	}
}

// idBytes returns the random part of the id of the run that continues the work of an entry. Each
// round and each try has its own run.
func idBytes(e *agency.QueueEntry, try int) [10]byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %s %d %d %d", e.Repo, e.RunID, e.Seq, e.Rounds, try))
	return [10]byte(sum[:10])
}
