package policy

import (
	"context"
	"sync"

	"agency"
	"agency/internal/runner"
	"agency/internal/supervisor"
)

// Claim is the sender that a request names. The policy checks it once, when a decision depends on
// it.
type Claim struct {
	Caller      supervisor.Caller
	Tools       bool // the tools of an agent sent the request
	FromSandbox bool // a wrapper relayed the request, for an agent in a sandbox
	PID         int  // the process that connected; 0 when unknown

	once sync.Once
	id   string
	err  error
}

// claimKey is the key of the claim in the context of a request.
type claimKey struct{}

// WithClaim returns a context that carries the claim of a request. A request without a claim is
// from the user.
func WithClaim(ctx context.Context, c *Claim) context.Context {
	return context.WithValue(ctx, claimKey{}, c)
}

// Caller returns the checked sender of a request: the id of a run, or agency.User.
func (p *Policy) Caller(ctx context.Context) (string, error) {
	c, ok := ctx.Value(claimKey{}).(*Claim)
	if !ok {
		return agency.User, nil
	}
	c.once.Do(func() { c.id, c.err = p.identify(ctx, c) })
	return c.id, c.err
}

// identify checks the token, and the process that connected. A process of a run counts as that run,
// even without a token, and no run can use the token of another.
func (p *Policy) identify(ctx context.Context, c *Claim) (string, error) {
	claimed, err := p.Callers.Identify(ctx, c.Caller)
	if err != nil || c.PID == 0 {
		return claimed, err
	}
	attempts := p.Runs.Attempts()
	live := make([]runner.Live, 0, len(attempts))
	for _, l := range attempts {
		live = append(live, runner.Live(l))
	}
	id, err := runner.RunOfProcess(c.PID, live, p.Serving)
	switch {
	case err != nil && claimed == agency.User:
		return "", agency.Errorf(agency.CodePermissionDenied, "agency cannot find the run whose process sent this: %w", err).WithHint("try it again")
	case err != nil || id == "" || claimed == string(id):
		return claimed, nil
	case claimed == agency.User:
		return string(id), nil
	default:
		return "", agency.Errorf(agency.CodePermissionDenied, "the token is that of %s, and the process belongs to %s", claimed, id).
			WithHint("AGENCY_RUN_ID, AGENCY_ATTEMPT and AGENCY_TOKEN are those that the run was given")
	}
}

// Agent returns the run that sent a request, nil when no run did. asks reports whether an agent
// sent it: a run, or tools that an agent uses.
func (p *Policy) Agent(ctx context.Context) (by *agency.Run, asks bool, err error) {
	who, err := p.Caller(ctx)
	if err != nil {
		return nil, false, err
	}
	if who == agency.User {
		c, ok := ctx.Value(claimKey{}).(*Claim)
		return nil, ok && c.Tools, nil
	}
	by, err = p.Store.Run(ctx, agency.RunID(who))
	return by, true, err
}
