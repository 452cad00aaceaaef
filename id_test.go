package agency_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"
	"pgregory.net/rapid"

	"agency"
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

func TestSlug(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ typ, name, prompt, want string }{
		{"", "", "Fix the flaky login test", "fix-the-flaky-login"},
		{"", "fix-login", "ignored", "fix-login"},
		{"", "a-name-of-more-than-twenty", "", "a-name-of-more-than"},
		{"plan", "", "Fix the login", "plan-fix-the-lo"},
		{"plan", "auth", "ignored", "plan-auth"},
		{"plan", "", "", "plan"},
		{"review.deep_look", "auth", "", "review-deep-look-auth"},
		{"", "", "", "run"},
		{"", "", "日本語だけ", "日本語だけ"},
		{"", "", "修复登录测试，它有时会失败。", "修复登录测试-它有时"},
		{"", "", "修复 login 测试", "login"},
		{"review", "", "로그인 테스트 고치기", "review-로그인-테"},
		{"", "", "¡Añade tests!", "a-ade-tests"},
		{"", "", "---", "run"},
		{"", "", "twelve3456789012345 -x", "twelve3456789012345"},
		{"", "", "\x00\x1b[31mred", "31mred"},
		{"", "", strings.Repeat(" ", 10<<20) + "late", "late"},
	} {
		if got := agency.Slug(tt.typ, tt.name, tt.prompt); got != tt.want {
			t.Errorf("Slug(%q, %q, %.30q) = %q, want %q", tt.typ, tt.name, tt.prompt, got, tt.want)
		}
	}
}

func FuzzSlug(f *testing.F) {
	f.Add("plan", "", "Fix it, please!")
	f.Add("", "", "----a----------------------b")
	f.Add("日", "\xff", "\x00")
	f.Fuzz(func(t *testing.T, typ, name, prompt string) {
		got := agency.Slug(typ, name, prompt)
		if !regexp.MustCompile(`^[a-z0-9\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]+(-[a-z0-9\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]+)*$`).MatchString(got) || ansi.StringWidth(got) > 20+1+10 {
			t.Errorf("Slug(%q, %q, %q) = %q", typ, name, prompt, got)
		}
	})
}

func TestHandleFormats(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 22, 9, 8, 7, 0, time.UTC)
	for _, tt := range []struct{ format, first, again string }{
		{"", "1122-auth-fix-a1b2", "1122-auth-fix-a1b2"},
		{"mmdd-slug-hash", "1122-auth-fix-a1b2", "1122-auth-fix-a1b2"},
		{"timestamp-slug", "20261122090807-auth-fix", "20261122090807-auth-fix-a1b2"},
		{"{hash}", "a1b2", "a1b2"},
		{"team7-{type}-{YYYYMMDD}-{HHMMSS}-{hash}", "team7-plan-20261122-090807-a1b2", "team7-plan-20261122-090807-a1b2"},
	} {
		f, err := agency.ParseHandleFormat(tt.format)
		if err != nil {
			t.Errorf("%q: %v", tt.format, err)
			continue
		}
		for again, want := range map[bool]string{false: tt.first, true: tt.again} {
			if got := f.Handle(at, "auth-fix", "plan", "a1b2", again); got != want {
				t.Errorf("%q makes %q (again %v), want %q", tt.format, got, again, want)
			}
		}
	}
	for _, format := range []string{
		"{slug}", "mmdd", "{hash", "hash}", "{}{hash}", "{Hash}", "{date}-{hash}", "{hash} x", "A{hash}", "../{hash}", "-{hash}", "{hash}-",
		"{hash}\n", "{{hash}}", strings.Repeat("a", 80) + "{hash}",
	} {
		if f, err := agency.ParseHandleFormat(format); err == nil {
			t.Errorf("%q is taken and makes %q", format, f.Handle(at, "auth-fix", "", "a1b2", false))
		}
	}
}

func FuzzParseHandleFormat(f *testing.F) {
	for _, s := range []string{"mmdd-slug-hash", "{MMDD}-{hash}", "{{hash}", "{hash}{hash}", "{type}{hash}", "\x00{hash}"} {
		f.Add(s)
	}
	at := time.Date(2026, 11, 22, 9, 8, 7, 0, time.UTC)
	f.Fuzz(func(t *testing.T, s string) {
		format, err := agency.ParseHandleFormat(s)
		if err != nil {
			return
		}
		got := format.Handle(at, "auth-fix", "plan", "a1b2", true)
		if !regexp.MustCompile(`^[a-z0-9][a-z0-9-]*[a-z0-9]$`).MatchString(got) || !strings.Contains(got, "a1b2") {
			t.Errorf("%q makes %q", s, got)
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
		if got := agency.Slug("", s, ""); len(s) <= 20 && got != s {
			t.Errorf("the name %q becomes %q in a handle", s, got)
		}
		if agency.CheckWord("tag", s) != nil {
			t.Errorf("the name %q is no word", s)
		}
	})
}

func TestNearest(t *testing.T) {
	t.Parallel()
	known := []string{"prompt", "runner", "repo", "base_ref", "claude_code", "base_commit"}
	for word, want := range map[string]string{
		"promt": "prompt", "Prompt": "prompt", "runer": "runner", "base-ref": "base_ref", "repo": "repo", "rep": "repo", "Claud": "claude_code", "base": "", "cla": "",
		"": "", "x": "", "completely": "", strings.Repeat("prompt", 1000): "",
	} {
		if got := agency.Nearest(word, known); got != want {
			t.Errorf("Nearest(%.20q) = %q, want %q", word, got, want)
		}
	}
}
