package agency_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"agency"
	"agency/internal/handle"
)

func TestRunID(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		at := time.UnixMilli(rapid.Int64Range(0, 1<<48-1).Draw(t, "ms"))
		id := agency.NewRunID(at, [10]byte(rapid.SliceOfN(rapid.Byte(), 10, 10).Draw(t, "random")))
		got, err := agency.ParseRunID(string(id))
		if err != nil || got != id {
			t.Fatalf("%q is read as %q, %v", id, got, err)
		}
		got, err = agency.ParseRunID("r_" + strings.ToLower(string(id[2:])))
		if err != nil || got != id {
			t.Fatalf("%q in lower case is read as %q, %v", id, got, err)
		}
	})
}

func TestParseRunIDStrict(t *testing.T) {
	t.Parallel()
	const good = "r_01JD0000000000000000000000"
	if _, err := agency.ParseRunID(good); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{
		"", "r_", "01JD0000000000000000000000", "R_01JD0000000000000000000000", "r-01JD0000000000000000000000",
		good[:len(good)-1], good + "0", good + " ", " " + good, good + "\n", good[:len(good)-1] + "U", good[:len(good)-1] + "!",
		good[:len(good)-1] + "I", "r_8ZZZZZZZZZZZZZZZZZZZZZZZZZ", good[:len(good)-2] + "é",
	} {
		if id, err := agency.ParseRunID(s); !agency.IsCode(err, agency.CodeUsage) || id != "" {
			t.Errorf("ParseRunID(%q) = %q, %v", s, id, err)
		}
	}
}

func FuzzParseRunID(f *testing.F) {
	for _, s := range []string{"r_01JD0000000000000000000000", "r_01jd0000000000000000000000", "r_", "r_\x00", "", "r_ZZZZZZZZZZZZZZZZZZZZZZZZZZ"} {
		f.Add(s)
	}
	canonical := regexp.MustCompile(`^r_[0-7][0-9A-HJKMNP-TV-Z]{25}$`)
	f.Fuzz(func(t *testing.T, s string) {
		id, err := agency.ParseRunID(s)
		switch {
		case err != nil && id != "":
			t.Errorf("an error came with %q", id)
		case err == nil && (!canonical.MatchString(string(id)) || !strings.EqualFold(string(id), s)):
			t.Errorf("%q is read as %q", s, id)
		}
	})
}

func TestCheckName(t *testing.T) {
	t.Parallel()
	for name, ok := range map[string]bool{
		"fix-login": true, "ab": true, "a1": true, strings.Repeat("a", 40): true,
		"": false, "a": false, "1a": false, "-a": false, "a-": false, "a--b": false, "Fix": false, "a b": false, "a.b": false, "a_b": false,
		"é1": false, "ab\n": false, "ab\x00": false, strings.Repeat("a", 41): false, "../a": false,
	} {
		if err := agency.CheckName(name); (err == nil) != ok || (err != nil && !agency.IsCode(err, agency.CodeUsage)) {
			t.Errorf("CheckName(%q) = %v", name, err)
		}
	}
}

func TestCheckWord(t *testing.T) {
	t.Parallel()
	for word, ok := range map[string]bool{
		"worker": true, "a": true, "7": true, "a.b_c-d": true, strings.Repeat("a", 40): true,
		"": false, "-a": false, ".a": false, "A": false, "a b": false, "a,b": false, "a\n": false, strings.Repeat("a", 41): false,
	} {
		err := agency.CheckWord("tag", word)
		if (err == nil) != ok || (err != nil && !strings.HasPrefix(err.Error(), "the tag ")) {
			t.Errorf("CheckWord(%q) = %v", word, err)
		}
	}
}

func FuzzCheckName(f *testing.F) {
	for _, s := range []string{"fix-login", "a", "a--b", "A1", "é", "a\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if agency.CheckName(s) != nil {
			return
		}
		if got := handle.Slug("", s, ""); len(s) <= 20 && got != s {
			t.Errorf("the name %q becomes %q in a handle", s, got)
		}
		if agency.CheckWord("tag", s) != nil {
			t.Errorf("the name %q is no word", s)
		}
	})
}
