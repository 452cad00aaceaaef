package supervisor

import (
	"context"
	"crypto/subtle"
	"time"

	"agency"
)

// Callers checks the identity of clients.
type Callers struct{ store *Records }

// Caller is a client: a run, proven by the token of its attempt, or the user.
type Caller struct {
	Run     agency.RunID // empty is the user, and every program that does not run below a wrapper
	Attempt int
	Token   string
}

// Identify checks a caller and returns its name in messages. The error is E_PERMISSION_DENIED for a
// run that does not exist, an older attempt, or a wrong token.
func (cs *Callers) Identify(ctx context.Context, c Caller) (string, error) {
	if c.Run == "" {
		return agency.User, nil
	}
	refused := agency.Errorf(agency.CodePermissionDenied, "the token is not that of attempt %d of %s", c.Attempt, c.Run).
		WithHint("AGENCY_RUN_ID, AGENCY_ATTEMPT and AGENCY_TOKEN belong together; outside of a run, unset all three")
	hash, err := cs.store.TokenHash(ctx, c.Run, c.Attempt)
	if agency.IsCode(err, agency.CodeRunNotFound) {
		return "", refused
	}
	if err != nil {
		return "", err
	}
	if subtle.ConstantTimeCompare([]byte(hash), []byte(agency.TokenHash(c.Token))) != 1 {
		return "", refused
	}
	return string(c.Run), nil
}

// LiveAttempt is an attempt that has not ended, with the processes that proved to be its wrapper.
type LiveAttempt struct {
	Run      agency.RunID
	Attempt  int
	Wrappers []agency.Process
}

// environTimeout is how long a wrapper may take to report an environment.
const environTimeout = 5 * time.Second

// mostOwners bounds how many owners are followed upwards.
const mostOwners = 100

// Owners returns the run with this id, its owner, the owner of that, and so on, without the user.
func (cs *Callers) Owners(ctx context.Context, id string) ([]agency.RunID, error) {
	owners := []agency.RunID{}
	for id != agency.User && len(owners) < mostOwners {
		r, err := cs.store.Run(ctx, agency.RunID(id))
		if agency.IsCode(err, agency.CodeRunNotFound) {
			break
		}
		if err != nil {
			return nil, err
		}
		owners, id = append(owners, r.ID), r.Owner
	}
	return owners, nil
}
