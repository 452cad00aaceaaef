package sqlite_test

import (
	"testing"

	"agency"
)

func TestTrust(t *testing.T) {
	t.Parallel()
	s := setup(t)
	one := agency.Repo{Fingerprint: "one", Root: "/one", CommonDir: "/one/.git"}
	two := agency.Repo{Fingerprint: "two", Root: "/two", CommonDir: "/two/.git"}
	expect := func(repo agency.Repo, hash string, trusted, some bool) {
		t.Helper()
		gotTrusted, gotSome, err := s.Trusts(t.Context(), repo.Fingerprint, hash)
		if err != nil || gotTrusted != trusted || gotSome != some {
			t.Errorf("%s %s: got %v, %v, %v", repo.Root, hash, gotTrusted, gotSome, err)
		}
	}
	events := func(want int) {
		t.Helper()
		if last, err := s.LastSeq(t.Context()); err != nil || last != int64(want) {
			t.Errorf("got %d events, want %d, %v", last, want, err)
		}
	}
	expect(one, "h1", false, false)
	for range 2 { // the second time makes no event
		if err := s.GrantTrust(t.Context(), one, "h1"); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.GrantTrust(t.Context(), one, "h2"); err != nil {
		t.Fatal(err)
	}
	events(2)
	expect(one, "h1", true, true)
	expect(one, "h3", false, true)
	expect(two, "h1", false, false)
	if n, err := s.RevokeTrust(t.Context(), two); n != 0 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	if n, err := s.RevokeTrust(t.Context(), one); n != 2 || err != nil {
		t.Errorf("got %d, %v", n, err)
	}
	events(3)
	expect(one, "h1", false, false)
}
