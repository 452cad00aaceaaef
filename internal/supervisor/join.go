package supervisor

import (
	"context"

	"agency"
)

// Join opens a door at which the agent's own terminal can join the conversation of a run. The error is
// E_INVALID_STATE for a run whose agent has no such terminal, or in which none can join now.
func (in *Input) Join(ctx context.Context, ref string) (*agency.Run, agency.Door, error) {
	r, err := in.store.Resolve(ctx, ref)
	if err != nil {
		return nil, agency.Door{}, err
	}
	if err := checkListens(r, "its terminal has nothing to join"); err != nil {
		return nil, agency.Door{}, err
	}
	switch {
	case r.Attempt.HasTerminal():
		return nil, agency.Door{}, agency.Errorf(agency.CodeInvalidState, "%s is in the mode terminal, in which the terminal of its agent is that of the run", r.Ref()).
			WithHint("agency attach %s", r.Ref())
	case r.Attempt.Mode != agency.ModeProtocol:
		return nil, agency.Door{}, agency.Errorf(agency.CodeInvalidState, "%s is headless: its agent takes no further client", r.Ref()).
			WithHint("agency mode %s terminal", r.Ref())
	}
	if err := in.harness.Joins(r.Runner.Kind); err != nil {
		return nil, agency.Door{}, agency.AsError(err).WithHint("agency attach %s shows the conversation; agency mode %s terminal starts the agent in its terminal", r.Ref(), r.Ref())
	}
	link, err := in.live.mustLink(ctx, r)
	if err != nil {
		return nil, agency.Door{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, inputTimeout)
	defer cancel()
	door, err := link.Door(ctx)
	if err != nil {
		err = byName(err, r)
		if e := agency.AsError(err); e.Hint == "" {
			err = e.WithHint("agency attach %s shows the conversation", r.Ref())
		}
		return nil, agency.Door{}, err
	}
	return r, door, nil
}
