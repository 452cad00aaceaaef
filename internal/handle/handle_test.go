package handle_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/charmbracelet/x/ansi"

	"agency/internal/handle"
)

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
		if got := handle.Slug(tt.typ, tt.name, tt.prompt); got != tt.want {
			t.Errorf("Slug(%q, %q, %.30q) = %q, want %q", tt.typ, tt.name, tt.prompt, got, tt.want)
		}
	}
}

func FuzzSlug(f *testing.F) {
	f.Add("plan", "", "Fix it, please!")
	f.Add("", "", "----a----------------------b")
	f.Add("日", "\xff", "\x00")
	f.Fuzz(func(t *testing.T, typ, name, prompt string) {
		got := handle.Slug(typ, name, prompt)
		if !regexp.MustCompile(`^[a-z0-9\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]+(-[a-z0-9\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]+)*$`).MatchString(got) || ansi.StringWidth(got) > 20+1+10 {
			t.Errorf("Slug(%q, %q, %q) = %q", typ, name, prompt, got)
		}
	})
}

func TestFormats(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 22, 9, 8, 7, 0, time.UTC)
	for _, tt := range []struct{ format, first, again string }{
		{"", "1122-auth-fix-a1b2", "1122-auth-fix-a1b2"},
		{"mmdd-slug-hash", "1122-auth-fix-a1b2", "1122-auth-fix-a1b2"},
		{"timestamp-slug", "20261122090807-auth-fix", "20261122090807-auth-fix-a1b2"},
		{"{hash}", "a1b2", "a1b2"},
		{"team7-{type}-{YYYYMMDD}-{HHMMSS}-{hash}", "team7-plan-20261122-090807-a1b2", "team7-plan-20261122-090807-a1b2"},
	} {
		f, err := handle.ParseFormat(tt.format)
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
		if f, err := handle.ParseFormat(format); err == nil {
			t.Errorf("%q is taken and makes %q", format, f.Handle(at, "auth-fix", "", "a1b2", false))
		}
	}
}

func FuzzParseFormat(f *testing.F) {
	for _, s := range []string{"mmdd-slug-hash", "{MMDD}-{hash}", "{{hash}", "{hash}{hash}", "{type}{hash}", "\x00{hash}"} {
		f.Add(s)
	}
	at := time.Date(2026, 11, 22, 9, 8, 7, 0, time.UTC)
	f.Fuzz(func(t *testing.T, s string) {
		format, err := handle.ParseFormat(s)
		if err != nil {
			return
		}
		got := format.Handle(at, "auth-fix", "plan", "a1b2", true)
		if !regexp.MustCompile(`^[a-z0-9][a-z0-9-]*[a-z0-9]$`).MatchString(got) || !strings.Contains(got, "a1b2") {
			t.Errorf("%q makes %q", s, got)
		}
	})
}
