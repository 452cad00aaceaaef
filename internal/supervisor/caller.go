package supervisor

import (
	"context"
	"crypto/subtle"
	"time"

	"agency"
)

// Callers proves who asks for something.
type Callers struct{ store *Records }

// Caller is who asks for something: a run, proven by the token of its attempt, or the person.
type Caller struct {
	Run     agency.RunID // empty is the person, and every program that does not run below a wrapper
	Attempt int
	Token   string
}

// Identify checks who a caller is, and returns the name by which messages know it. A run that does not exist, an older
// attempt and a wrong token are E_PERMISSION_DENIED.
func (cs *Callers) Identify(ctx context.Context, c Caller) (string, error) {
	if c.Run == "" {
		return agency.User, nil
	}
	refused := agency.Errorf(agency.CodePermissionDenied, "the token is not that of attempt %d of %s", c.Attempt, c.Run).
		WithHint("AGENCY_RUN_ID, AGENCY_ATTEMPT and AGENCY_TOKEN belong together; a person unsets all three")
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

// LiveAttempt is an attempt that has not ended, and the processes that proved to be its wrapper.
type LiveAttempt struct {
	Run      agency.RunID
	Attempt  int
	Wrappers []agency.Process
}

// environTimeout is how long a wrapper may take to tell an environment.
const environTimeout = 5 * time.Second

// mostOwners bounds how far up owners are followed.
const mostOwners = 100

// Owners are the run of this id and those above it: who started it, who started that, up to the person, who is not among them.
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
