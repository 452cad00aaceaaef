package agency_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agency"
)

// The bytes of every variable are returned unchanged.
func FuzzEnviron(f *testing.F) {
	f.Add("A=1", "B=\xff\xfe")
	f.Add("", "NAME=grün\n\"quoted\"")
	f.Fuzz(func(t *testing.T, a, b string) {
		env := agency.Environ{a, b}
		data, err := json.Marshal(env)
		if err != nil {
			t.Fatal(err)
		}
		var back agency.Environ
		if err := json.Unmarshal(data, &back); err != nil || cmp.Diff(env, back) != "" {
			t.Errorf("%q became %s and %q: %v", env, data, back, err)
		}
	})
}

func TestEnvironRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{}`, `[1]`, `[{"base64":"*"}]`, `"A=1"`} {
		var env agency.Environ
		if err := json.Unmarshal([]byte(text), &env); err == nil {
			t.Errorf("%s was read as %q", text, env)
		}
	}
}

func TestEnvironLookup(t *testing.T) {
	t.Parallel()
	env := agency.Environ{"A=1", "AB=2", "A=", "none", "A=3=4", "=x"}
	if got := env.Lookup("A") + env.Lookup("none") + env.Lookup("C"); got != "3=4" {
		t.Errorf("got %q", got)
	}
	if got := env.Without("A", "C"); !slices.Equal(got, agency.Environ{"AB=2"}) || len(env) != 6 {
		t.Errorf("got %q of %q", got, env)
	}
}
