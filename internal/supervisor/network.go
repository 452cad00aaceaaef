package supervisor

import (
	"context"
	"reflect"
	"slices"
	"time"

	"agency"
	"agency/internal/host"
)

// useNetwork sets what an attempt did with the network allow, and returns an event for each host that
// it was refused for the first time.
func useNetwork(a *agency.Attempt, use *agency.NetworkUse) []agency.EventDraft {
	if use == nil {
		return nil
	}
	before := agency.NetworkUse{}
	if a.Network != nil {
		before = *a.Network
	}
	var drafts []agency.EventDraft
	for _, r := range use.Refused {
		if !slices.ContainsFunc(before.Refused, func(old agency.Refusal) bool { return old.Host == r.Host }) {
			drafts = append(drafts, agency.EventDraft{Type: agency.NetworkRefused, Data: r})
		}
	}
	if use.Problem != "" && before.Problem == "" {
		drafts = append(drafts, agency.EventDraft{Type: agency.NetworkBroken, Data: map[string]any{"problem": use.Problem}})
	}
	now := *use
	now.Granted = before.Grants(false) // the wrapper does not know them
	a.Network = &now
	return drafts
}

// recordNetwork records what a live attempt did with the network allow.
func (s *settler) recordNetwork(ctx context.Context, id agency.RunID, attempt int, use *agency.NetworkUse) error {
	r, err := s.store.Run(ctx, id)
	if err != nil || r.Attempt.Number != attempt {
		return err
	}
	now := *use
	now.Granted = r.Attempt.Network.Grants(false)
	if reflect.DeepEqual(r.Attempt.Network, &now) {
		return nil
	}
	_, err = s.store.fact(ctx, id, func(r *agency.Run) ([]agency.EventDraft, error) {
		if a := &r.Attempt; a.Number == attempt && !a.State.Final() {
			return useNetwork(a, use), nil
		}
		return nil, nil
	})
	return err
}

// AllowHost lets a run with the network allow reach one more entry of a list of hosts. The entry is
// recorded first, so that a wrapper without a connection gets it when it connects again. reached
// reports whether a live wrapper has taken the entry.
func (s *Supervisor) AllowHost(ctx context.Context, ref, entry string, scope agency.GrantScope) (r *agency.Run, reached bool, err error) {
	if err := checkGrant(entry, scope); err != nil {
		return nil, false, err
	}
	r, release, err := s.Records.Hold(ctx, ref)
	if err != nil {
		return nil, false, err
	}
	defer release()
	r, err = s.Records.ChangeRun(ctx, r.ID, func(r *agency.Run) ([]agency.EventDraft, error) { return grant(r, entry, scope, s.Now()) })
	if err != nil || r.Attempt.State.Final() {
		return r, false, err
	}
	ctx, cancel := context.WithTimeout(ctx, allowTime)
	defer cancel()
	link := s.Live.awaitLink(ctx, r.ID)
	return r, link != nil && link.Allow(ctx, []string{entry}) == nil, nil
}

// allowTime is how long a wrapper may take to allow a host.
const allowTime = 5 * time.Second

func checkGrant(entry string, scope agency.GrantScope) error {
	hosts, err := host.Parse(entry)
	switch {
	case scope != agency.GrantOnce && scope != agency.GrantRun:
		return agency.Errorf(agency.CodeUsage, "the scope of a host is %q, not %s or %s", scope, agency.GrantOnce, agency.GrantRun)
	case err != nil:
		return agency.Errorf(agency.CodeUsage, "the entry %w", err).WithHint("such as example.com, example.com:8443 or npm")
	case slices.ContainsFunc(hosts, host.Host.Local):
		return agency.Errorf(agency.CodeUsage, "%s is on this machine, and a sandbox reaches such a host only if it is in its list from the start", entry).
			WithHint("add it to [sandbox] hosts of your configuration, and start the agent again: agency resume --restart RUN")
	}
	return nil
}

// grant adds a grant to the record of a run, or makes it last longer.
func grant(r *agency.Run, entry string, scope agency.GrantScope, now time.Time) ([]agency.EventDraft, error) {
	a := &r.Attempt
	switch {
	case r.Sandbox.Network != agency.NetworkAllow:
		return nil, agency.Errorf(agency.CodeInvalidState, "%s has the network %s, which no list of hosts changes", r.Ref(), r.Sandbox.Network)
	case r.RemovedAt != nil:
		return nil, agency.Errorf(agency.CodeInvalidState, "%s is removed", r.Ref())
	case a.State.Final() && scope == agency.GrantOnce:
		return nil, agency.Errorf(agency.CodeInvalidState, "%s is %s: no agent would use the host", r.Ref(), a.State).WithHint("for its next attempt: agency answer %s run --host %s", r.Ref(), entry)
	}
	granted := slices.DeleteFunc(a.Network.Grants(false), func(g agency.Grant) bool { return g.Entry == entry && g.Scope == agency.GrantOnce })
	if slices.ContainsFunc(granted, func(g agency.Grant) bool { return g.Entry == entry }) {
		return nil, nil
	}
	given := agency.Grant{Entry: entry, Scope: scope, At: now}
	use := agency.NetworkUse{Hosts: []string{}, Refused: []agency.Refusal{}}
	if a.Network != nil {
		use = *a.Network
	}
	use.Granted = append(granted, given)
	a.Network = &use
	return []agency.EventDraft{{Type: agency.NetworkGranted, Data: given}}, nil
}
