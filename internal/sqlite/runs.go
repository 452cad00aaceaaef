package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"agency"
)

// runColumns are the columns that a change may write, in the order of runValues and runDest.
const runColumns = `handle, name, type, repo, base_ref, base_commit, branch, worktree_path, run_dir, runner_kind, runner_name,
	runner_args, model, tags, owner, max_minutes, stall_after_ms, stuck_intervals, preset, sandbox, network, resources, config_hash, host, removed_at_ms, merged_at_ms, abandoned, flag,
	pr, git_config, git_programs, git_remotes, removing, changes, attempt`

func runValues(r *agency.Run) ([]any, error) {
	args, err1 := list(r.Runner.Args)
	tags, err2 := list(r.Tags)
	removing, err3 := rare(r.Removing)
	flag, err4 := rare(r.Flag)
	pr, err5 := rare(r.PR)
	limits, err6 := resources(r.Resources)
	return []any{
		r.Handle, r.Name, r.Type, r.Repo.Fingerprint, r.Base, r.Commit, r.Branch, r.Worktree, r.Dir, string(r.Runner.Kind),
		r.Runner.Name, args, r.Model, tags, r.Owner, r.MaxMinutes, r.StallAfterMS, r.StuckIntervals, r.Preset, string(r.Sandbox.Level), string(r.Sandbox.Network), limits, r.ConfigHash, r.Host, millis(r.RemovedAt), millis(r.MergedAt),
		r.Abandoned, flag, pr, r.Repo.GitConfig, r.Repo.GitPrograms, r.Repo.GitRemotes, removing, changes(r.Changes), r.Attempt.Number,
	}, errors.Join(err1, err2, err3, err4, err5, err6)
}

// selectRuns reads runs with their newest attempts; a condition on r, a and p follows.
const selectRuns = `SELECT r.seq, r.id, r.created_at_ms, r.updated_at_ms, p.root, p.common_dir, ` + runColumns + `,
	a.number, a.created_at_ms, ` + attemptColumns + `
	FROM runs r JOIN attempts a ON a.run_id = r.id AND a.number = r.attempt JOIN repos p ON p.fingerprint = r.repo `

// runDest takes a row of selectRuns.
func runDest(r *agency.Run) []any {
	return append([]any{
		whole(&r.Seq), text(&r.ID), moment(&r.CreatedAt), moment(&r.UpdatedAt), text(&r.Repo.Root), text(&r.Repo.CommonDir),
		text(&r.Handle), text(&r.Name), text(&r.Type), text(&r.Repo.Fingerprint), text(&r.Base), text(&r.Commit),
		text(&r.Branch), text(&r.Worktree), text(&r.Dir), text(&r.Runner.Kind), text(&r.Runner.Name), toList(&r.Runner.Args),
		text(&r.Model), toList(&r.Tags), text(&r.Owner), whole(&r.MaxMinutes), whole(&r.StallAfterMS), whole(&r.StuckIntervals), text(&r.Preset), text(&r.Sandbox.Level), text(&r.Sandbox.Network), toResources(&r.Resources), text(&r.ConfigHash), text(&r.Host),
		optionalMoment(&r.RemovedAt), optionalMoment(&r.MergedAt), flag(&r.Abandoned), toRare(&r.Flag),
		toRare(&r.PR), text(&r.Repo.GitConfig), text(&r.Repo.GitPrograms), text(&r.Repo.GitRemotes), toRare(&r.Removing), toChanges(&r.Changes), whole(&r.Attempt.Number),
	}, attemptDest(&r.Attempt)...)
}

// runScanner scans the rows of one query into the same memory: the row is large.
func runScanner() func(scanner) (agency.Run, error) {
	var r agency.Run
	dest := runDest(&r)
	return func(row scanner) (agency.Run, error) {
		r = agency.Run{}
		err := row.Scan(dest...)
		return r, err
	}
}

// CreateRun writes a new run with its repository, its attempt and its steps, and fills in what the
// store decides: r.Seq, r.CreatedAt and r.UpdatedAt. A name that a run not removed has is
// E_NAME_EXISTS, a branch of the same repository that such a run has is E_BRANCH_EXISTS, and a
// handle that any run has is agency.ErrHandleTaken.
func (s *runs) CreateRun(ctx context.Context, r *agency.Run, c agency.Creation, drafts ...agency.EventDraft) error {
	run := *r
	err := s.db.write(ctx, "create run in", func(tx *transaction) error {
		if err := tx.putRepo(ctx, run.Repo); err != nil {
			return err
		}
		if err := tx.insertRun(ctx, &run, c.Spec); err != nil {
			return err
		}
		if err := tx.insertAttempt(ctx, run.ID, &run.Attempt); err != nil {
			return err
		}
		if err := tx.setToken(ctx, run.ID, run.Attempt.Number, c.TokenHash); err != nil {
			return err
		}
		if err := tx.planSteps(ctx, run.ID, run.Attempt.Number, c.Steps); err != nil {
			return err
		}
		return tx.append(ctx, run.ID, run.Attempt.Number, drafts...)
	})
	if err != nil {
		return err
	}
	*r = run
	return nil
}

func (tx *transaction) insertRun(ctx context.Context, r *agency.Run, spec []byte) error {
	r.CreatedAt, r.UpdatedAt = tx.now, tx.now
	values, err := runValues(r)
	if err != nil {
		return fmt.Errorf("encode run %s: %w", r.ID, err)
	}
	values = append(values, string(r.ID), tx.now.UnixMilli(), tx.now.UnixMilli())
	result, err := tx.ExecContext(ctx, `INSERT INTO runs (`+runColumns+`, id, created_at_ms, updated_at_ms)
		VALUES (`+marks(len(values))+`)`, values...)
	if err != nil {
		return conflict(err, r)
	}
	if r.Seq, err = result.LastInsertId(); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO specs (run_id, spec) VALUES (?, ?)`, string(r.ID), append([]byte{}, spec...))
	return err
}

// ChangeRun lets change edit a run and its newest attempt, and writes the result with the events
// that it returns, all or nothing. No other change happens in between; change must not call the
// store. An event run.step marks the step as done. To begin a new attempt, change sets r.Attempt to
// it, with the next number. An error of change is returned as it is, and nothing is written.
// Without events and differences nothing is written either. Id, order, times of creation and the
// repository's place stay as they are, whatever change does to them. A run that does not exist is
// E_RUN_NOT_FOUND. ChangeRun returns the run as it is stored now.
func (s *runs) ChangeRun(ctx context.Context, id agency.RunID, change func(r *agency.Run) ([]agency.EventDraft, error)) (*agency.Run, error) {
	return s.changeRun(ctx, id, false, change)
}

// changeRun is ChangeRun or, with keep, RecordFact.
func (s *runs) changeRun(ctx context.Context, id agency.RunID, keep bool, change func(r *agency.Run) ([]agency.EventDraft, error)) (*agency.Run, error) {
	s.db.unwritten.turn.Lock()
	defer s.db.unwritten.turn.Unlock()
	facts := s.db.unwritten.all()
	kept := facts[id]
	var stored, changed agency.Run
	var drafts []agency.EventDraft
	same := false
	err := s.db.write(ctx, "change run in", func(tx *transaction) error {
		changed, same = agency.Run{}, false
		selectRun := tx.StmtContext(ctx, s.db.writerRun)
		r, err := readRun(ctx, selectRun, id)
		if err != nil {
			return err
		}
		overlayRun(facts, &r)
		newest, there := r.Attempt.Number, r.RemovedAt == nil
		before, err := encode(&r)
		if err != nil {
			return err
		}
		unchanged := r
		if drafts, err = change(&r); err != nil {
			return err
		}
		after, err := encode(&r)
		if err != nil {
			return err
		}
		changed, same = r, len(drafts) == 0 && after.equal(before)
		if r.Unrecorded {
			if err := tx.writeFact(ctx, &unchanged, before, kept); err != nil {
				return err
			}
			tx.committed = func() { s.db.unwritten.set(id, nil) }
		}
		if !same {
			if err := tx.updateRun(ctx, id, &r, after, newest); err != nil {
				return err
			}
		}
		if err := tx.followChange(ctx, &r, there, drafts); err != nil {
			return err
		}
		stored, err = readRun(ctx, selectRun, id)
		return err
	})
	switch {
	case err == nil:
		return &stored, nil
	case !Full(err) || changed.ID == "" || !keep && !same:
		return nil, err
	case !same: // otherwise nothing more is to be kept
		s.keepFact(&changed, slices.Concat(kept.drafts, drafts))
	}
	return &changed, nil
}

// keepFact keeps a change of a run in memory.
func (s *runs) keepFact(r *agency.Run, drafts []agency.EventDraft) {
	s.db.unwritten.set(r.ID, &fact{r.Attempt, drafts})
	s.db.changed.send()
	r.Unrecorded = true
}

// followChange writes the events of a changed run. When the run has just been removed, it also
// drops its messages.
func (tx *transaction) followChange(ctx context.Context, r *agency.Run, there bool, drafts []agency.EventDraft) error {
	if err := tx.appendChange(ctx, r.ID, r.Attempt.Number, drafts); err != nil {
		return err
	}
	if there && r.RemovedAt != nil {
		return tx.dropMessages(ctx, r)
	}
	return nil
}

// writeFact writes the state of a run that could not be written earlier.
func (tx *transaction) writeFact(ctx context.Context, r *agency.Run, as record, kept fact) error {
	if err := tx.updateRun(ctx, r.ID, r, as, r.Attempt.Number); err != nil {
		return err
	}
	return tx.appendChange(ctx, r.ID, r.Attempt.Number, kept.drafts)
}

// dropMessages drops what a removed run wrote to inboxes, and what is in its own.
func (tx *transaction) dropMessages(ctx context.Context, r *agency.Run) error {
	if err := tx.clearInbox(ctx, `sender = ?`, string(r.ID)); err != nil {
		return err
	}
	return tx.buryMessages(ctx, string(r.ID), wasRemoved(r))
}

// record is everything of a run that a change may write, as it is stored.
type record struct{ run, attempt []any }

func encode(r *agency.Run) (record, error) {
	run, err1 := runValues(r)
	attempt, err2 := attemptValues(&r.Attempt)
	if err := errors.Join(err1, err2); err != nil {
		return record{}, fmt.Errorf("encode run %s: %w", r.ID, err)
	}
	return record{run, attempt}, nil
}

func (rec record) equal(other record) bool {
	return slices.Equal(rec.run, other.run) && slices.Equal(rec.attempt, other.attempt)
}

// later is the time of a change: after that of the change before, even within a millisecond or when
// the clock goes back.
const later = `max(?, updated_at_ms + 1)`

// The statements of every change of a run are prepared once: parsing takes longer than executing.
var (
	updateRun = `UPDATE runs SET (` + runColumns + `, updated_at_ms) = (` + marks(columns(runColumns)) + `, ` + later + `) WHERE id = ?`

	updateAttempt = `UPDATE attempts SET (` + attemptColumns + `) = (` + marks(columns(attemptColumns)) + `) WHERE run_id = ? AND number = ?`
)

// updateRun writes the record of r. newest is the number of its newest attempt so far.
func (tx *transaction) updateRun(ctx context.Context, id agency.RunID, r *agency.Run, rec record, newest int) error {
	_, err := tx.exec(ctx, tx.db.writerUpdateRun, append(rec.run, tx.now.UnixMilli(), string(id))...)
	if err != nil {
		return conflict(err, r)
	}
	switch r.Attempt.Number {
	case newest:
		_, err := tx.exec(ctx, tx.db.writerUpdateAttempt, append(rec.attempt, string(id), newest)...)
		return err
	case newest + 1:
		return tx.insertAttempt(ctx, id, &r.Attempt)
	default:
		return fmt.Errorf("change run %s: attempt %d cannot follow attempt %d", id, r.Attempt.Number, newest)
	}
}

// Run returns one run, removed or not. A run that does not exist is E_RUN_NOT_FOUND.
func (s *runs) Run(ctx context.Context, id agency.RunID) (*agency.Run, error) {
	facts := s.db.unwritten.all()
	r, err := readRun(ctx, s.db.readerRun, id)
	if err != nil {
		return nil, problem("read run from", s.db.path, err)
	}
	overlayRun(facts, &r)
	return &r, nil
}

// selectRun is prepared once for each pool: parsing it takes longer than executing it.
const selectRun = selectRuns + `WHERE r.id = ?`

func readRun(ctx context.Context, selectRun *sql.Stmt, id agency.RunID) (agency.Run, error) {
	r, err := runScanner()(selectRun.QueryRowContext(ctx, string(id)))
	if errors.Is(err, sql.ErrNoRows) {
		return r, notFound(id)
	}
	return r, err
}

// Spec returns the request that a run was made from, as it was given to CreateRun.
func (s *runs) Spec(ctx context.Context, id agency.RunID) ([]byte, error) {
	var spec []byte
	err := s.db.readers.QueryRowContext(ctx, `SELECT spec FROM specs WHERE run_id = ?`, string(id)).Scan(&spec)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, notFound(id)
	}
	return spec, problem("read run from", s.db.path, err)
}
