package supervisor_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"agency"
)

// What the user allows an agent is in the record first: a wrapper that is away gets it when it is
// back, with another daemon too, and a later attempt gets what lasts for the run.
func TestAllowedHosts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var p *wrapper
		w.tmux.OnStart = func(l agency.Launch) error { p = w.wrap(l); return p.begin() }
		req := w.request("fix-login")
		req.Spec.Network = agency.NetworkAllow
		r, err := w.createRun(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		refused := agency.NetworkUse{Hosts: []string{}, Refused: []agency.Refusal{{Host: "a.example:443", Entry: "a.example", Count: 1}}}
		if err := w.sup.Wrappers.Update(t.Context(), r.ID, 1, agency.WrapperUpdate{Network: &refused}); err != nil {
			t.Fatal(err)
		}
		w.sup.Wrappers.Disconnect(r.ID, 1, p.link)
		for entry, scope := range map[string]agency.GrantScope{"a.example": agency.GrantOnce, "b.example": agency.GrantRun} {
			if _, reached, err := w.sup.AllowHost(t.Context(), "fix-login", entry, scope); err != nil || reached {
				t.Fatalf("%s: reached %t, %v", entry, reached, err)
			}
		}
		if now := w.run(r.ID).Attempt.Network; len(now.Unanswered()) > 0 || len(now.Refused) != 1 {
			t.Errorf("the record has %+v", now)
		}

		w.restart()
		got := []string{}
		p.link.AllowFunc = func(entries []string) { got = append(got, entries...) }
		if err := p.connect(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if slices.Sort(got); !slices.Equal(got, []string{"a.example", "b.example"}) {
			t.Errorf("the wrapper got %v", got)
		}

		if err := p.end(agency.Exit{EndedBy: agency.EndedByRunner, Network: &refused}); err != nil {
			t.Fatal(err)
		}
		w.resume("fix-login")
		if got := agency.Entries(w.run(r.ID).Attempt.Network.Grants(false)); !slices.Equal(got, []string{"b.example"}) {
			t.Errorf("the next attempt has %v", got)
		}
	})
}

// A host is allowed to a run whose list counts, and only in the form of a list.
func TestAllowedHostsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.started("open")
	for _, c := range []struct {
		ref, entry string
		scope      agency.GrantScope
		code       agency.Code
	}{
		{"open", "a.example", agency.GrantOnce, agency.CodeInvalidState},
		{"open", "https://a.example/", agency.GrantOnce, agency.CodeUsage},
		{"open", "localhost:8080", agency.GrantRun, agency.CodeUsage},
		{"open", "a.example", "for ever", agency.CodeUsage},
		{"other", "a.example", agency.GrantOnce, agency.CodeRunNotFound},
	} {
		if _, _, err := w.sup.AllowHost(t.Context(), c.ref, c.entry, c.scope); !agency.IsCode(err, c.code) {
			t.Errorf("%s %s %s: got %v, want %s", c.ref, c.entry, c.scope, err, c.code)
		}
	}
}
