package sqlite

import (
	"context"
	"errors"
	"fmt"

	driver "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"agency"
)

// Found is a run as its folder describes it.
type Found struct {
	Run       *agency.Run      // its Attempt is the newest
	Earlier   []agency.Attempt // from attempt 1 on
	Spec      []byte
	TokenHash string // of the newest attempt; empty when the folder does not hold it
}

// What Rebuild did with a run.
const (
	RunAdded   = "added"
	RunUpdated = "updated"
	RunKnown   = "known" // what the store has is as new
)

// Rebuild adds what a run's folder holds to the store, unless the store is newer. A store that lacks
// an attempt is not newer, whatever it recorded last. Facts that only the store has, such as its
// agent's report, stay. A name, a branch or a handle that another run has by now is refused as by
// CreateRun, and an invalid run is E_SPEC_INVALID; any other error is not about the run.
func (s *runs) Rebuild(ctx context.Context, f *Found) (did string, err error) {
	err = s.db.write(ctx, "rebuild run in", func(tx *transaction) error {
		stored, err := readRun(ctx, tx.StmtContext(ctx, s.db.writerRun), f.Run.ID)
		switch {
		case agency.IsCode(err, agency.CodeRunNotFound):
			did, err = RunAdded, tx.addFound(ctx, f)
		case err != nil:
			return err
		case f.Run.Attempt.Number <= stored.Attempt.Number && !f.Run.UpdatedAt.After(stored.UpdatedAt):
			did = RunKnown
			return nil
		default:
			did, err = RunUpdated, tx.updateFound(ctx, f, &stored)
		}
		if err != nil {
			return err
		}
		if f.TokenHash != "" {
			if err := tx.setToken(ctx, f.Run.ID, f.Run.Attempt.Number, f.TokenHash); err != nil {
				return err
			}
		}
		return tx.append(ctx, f.Run.ID, f.Run.Attempt.Number, agency.EventDraft{Type: agency.RunRebuilt, Data: map[string]any{"did": did}})
	})
	var sqlErr *driver.Error
	if errors.As(err, &sqlErr) && sqlErr.Code()&0xff == codes.SQLITE_CONSTRAINT {
		err = agency.Errorf(agency.CodeSpecInvalid, "its run directory does not hold a valid run: %w", err)
	}
	return did, err
}

func (tx *transaction) addFound(ctx context.Context, f *Found) error {
	r := *f.Run
	if err := tx.putRepo(ctx, r.Repo); err != nil {
		return err
	}
	if err := tx.insertRun(ctx, &r, f.Spec); err != nil {
		return err
	}
	for _, a := range append(f.Earlier, f.Run.Attempt) {
		if err := tx.insertAttempt(ctx, r.ID, &a); err != nil {
			return err
		}
	}
	return tx.setTimes(ctx, f.Run)
}

func (tx *transaction) updateFound(ctx context.Context, f *Found, stored *agency.Run) error {
	r := *f.Run
	newest := stored.Attempt.Number
	if r.Attempt.Number == newest {
		r.Attempt.Reported, r.Attempt.AgentState, r.Attempt.Restarting = stored.Attempt.Reported, stored.Attempt.AgentState, stored.Attempt.Restarting
	}
	for _, a := range f.Earlier {
		if a.Number > newest {
			if err := tx.insertAttempt(ctx, r.ID, &a); err != nil {
				return err
			}
			newest = a.Number
		}
	}
	rec, err := encode(&r)
	if err != nil {
		return err
	}
	if err := tx.updateRun(ctx, r.ID, &r, rec, newest); err != nil {
		return err
	}
	return tx.setTimes(ctx, f.Run)
}

// setTimes gives a run the times of its folder.
func (tx *transaction) setTimes(ctx context.Context, r *agency.Run) error {
	_, err := tx.ExecContext(ctx, `UPDATE runs SET created_at_ms = ?, updated_at_ms = ? WHERE id = ?`, r.CreatedAt.UnixMilli(), r.UpdatedAt.UnixMilli(), string(r.ID))
	if err != nil {
		return fmt.Errorf("date run %s: %w", r.ID, err)
	}
	return nil
}
