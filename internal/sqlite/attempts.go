package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"agency"
)

// attemptColumns are the columns that change in the life of an attempt, in the order of
// attemptValues and attemptDest.
const attemptColumns = `state, headless, conversation_id, started_at_ms, ended_at_ms, stop_requested_at_ms, exit_code,
	signal, ended_by, error_code, error, tmux_pane, wrapper, runner_process, contract, contract_problem, contract_at_ms, input_at_ms,
	agent_state, restarting, log_lost, network_use, limit_use, image, mode, ports`

func attemptValues(a *agency.Attempt) ([]any, error) {
	word, err1 := contract(a.Reported.Contract)
	sit, err2 := agentState(&a.AgentState)
	network, err3 := rare(a.Network)
	limits, err4 := rare(a.Limits)
	image, err5 := rare(a.Image)
	ports, err6 := rare(a.Ports)
	return []any{
		string(a.State), a.Headless, a.ConversationID, millis(a.StartedAt), millis(a.EndedAt), millis(a.StopRequestedAt),
		number(a.ExitCode), a.Signal, string(a.EndedBy), string(a.ErrorCode), a.Error, a.Pane, process(a.Wrapper),
		process(a.RunnerProcess), word, a.Reported.Problem, millis(&a.Reported.At), millis(a.InputAt),
		sit, a.Restarting, a.LogLost, network, limits, image, string(a.Mode), ports,
	}, errors.Join(err1, err2, err3, err4, err5, err6)
}

// attemptDest takes number, created_at_ms and the attemptColumns.
func attemptDest(a *agency.Attempt) []any {
	return []any{
		whole(&a.Number), moment(&a.CreatedAt), text(&a.State), flag(&a.Headless), text(&a.ConversationID),
		optionalMoment(&a.StartedAt), optionalMoment(&a.EndedAt), optionalMoment(&a.StopRequestedAt), optional(&a.ExitCode),
		text(&a.Signal), text(&a.EndedBy), text(&a.ErrorCode), text(&a.Error), text(&a.Pane), toProcess(&a.Wrapper),
		toProcess(&a.RunnerProcess), toContract(&a.Reported.Contract), text(&a.Reported.Problem), moment(&a.Reported.At),
		optionalMoment(&a.InputAt), toAgentState(&a.AgentState), flag(&a.Restarting), whole(&a.LogLost), toRare(&a.Network), toRare(&a.Limits), toRare(&a.Image), text(&a.Mode), toRare(&a.Ports),
	}
}

// insertAttempt adds an attempt. It keeps a given time of creation, in whole milliseconds like all
// times in the store, since the first contract of the attempt has it too; without one, the attempt
// is created now.
func (tx *transaction) insertAttempt(ctx context.Context, id agency.RunID, a *agency.Attempt) error {
	if a.CreatedAt.IsZero() {
		a.CreatedAt = tx.now
	}
	a.CreatedAt = fromMillis(a.CreatedAt.UnixMilli())
	values, err := attemptValues(a)
	if err != nil {
		return fmt.Errorf("encode attempt %d of run %s: %w", a.Number, id, err)
	}
	values = append(values, string(id), a.Number, a.CreatedAt.UnixMilli())
	_, err = tx.ExecContext(ctx, `INSERT INTO attempts (`+attemptColumns+`, run_id, number, created_at_ms)
		VALUES (`+marks(len(values))+`)`, values...)
	return err
}

// Attempts returns all attempts of a run, oldest first. A run that does not exist is
// E_RUN_NOT_FOUND.
func (s *runs) Attempts(ctx context.Context, id agency.RunID) ([]agency.Attempt, error) {
	kept, unwritten := s.db.unwritten.all()[id]
	rows, err := s.db.query(ctx, `SELECT number, created_at_ms, `+attemptColumns+`
		FROM attempts WHERE run_id = ? ORDER BY number`, string(id))
	if err != nil {
		return nil, problem("read attempts from", s.db.path, err)
	}
	attempts, err := collect(rows, func(row scanner) (agency.Attempt, error) {
		var a agency.Attempt
		err := row.Scan(attemptDest(&a)...)
		return a, err
	})
	if err == nil && len(attempts) == 0 {
		return nil, notFound(id)
	}
	for i := range attempts {
		if unwritten && attempts[i].Number == kept.attempt.Number {
			attempts[i] = kept.attempt
		}
	}
	return attempts, problem("read attempts from", s.db.path, err)
}

// SetToken replaces the hash of an attempt's token, with which the attempt proves its identity.
func (s *runs) SetToken(ctx context.Context, id agency.RunID, attempt int, tokenHash string) error {
	return s.db.write(ctx, "record token in", func(tx *transaction) error {
		return tx.setToken(ctx, id, attempt, tokenHash)
	})
}

func (tx *transaction) setToken(ctx context.Context, id agency.RunID, attempt int, tokenHash string) error {
	result, err := tx.ExecContext(ctx, `UPDATE attempts SET token_hash = ? WHERE run_id = ? AND number = ?`,
		tokenHash, string(id), attempt)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 1 {
		return err
	}
	return notFound(id)
}

// TokenHash returns the hash of an attempt's token, empty when none was set.
func (s *runs) TokenHash(ctx context.Context, id agency.RunID, attempt int) (string, error) {
	var hash string
	err := s.db.readers.QueryRowContext(ctx, `SELECT token_hash FROM attempts WHERE run_id = ? AND number = ?`,
		string(id), attempt).Scan(&hash)
	if errors.Is(err, sql.ErrNoRows) {
		return "", notFound(id)
	}
	return hash, problem("read token from", s.db.path, err)
}
