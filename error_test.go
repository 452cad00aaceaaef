package agency_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"agency"
)

// codes reads the constants of the type Code from error.go, so that none can be forgotten.
func codes(t *testing.T) []agency.Code {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "error.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	all := []agency.Code{}
	ast.Inspect(f, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if typ, ok := spec.Type.(*ast.Ident); !ok || typ.Name != "Code" {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, agency.Code(value))
		return true
	})
	return all
}

func TestEveryCodeHasAnOutcome(t *testing.T) {
	t.Parallel()
	all := codes(t)
	if len(all) < 30 {
		t.Fatalf("error.go has %d codes: the test reads it wrongly", len(all))
	}
	seen := map[agency.Code]bool{}
	for _, c := range all {
		if seen[c] || !strings.HasPrefix(string(c), "E_") || strings.ToUpper(string(c)) != string(c) {
			t.Errorf("the code %s stands twice or is not in capitals", c)
		}
		seen[c] = true
		if !c.Known() {
			t.Errorf("%s has no exit status", c)
		}
		if c.Exit() == agency.ExitOK || c.HTTPStatus() < http.StatusBadRequest {
			t.Errorf("%s is a success: exit %d, HTTP %d", c, c.Exit(), c.HTTPStatus())
		}
	}
	other := agency.Code("E_OTHER")
	if other.Known() || other.Exit() != agency.ExitError || other.HTTPStatus() != http.StatusInternalServerError {
		t.Error("a code of another program is not a plain failure")
	}
}

// The table of docs/json.md has one row for each code, and no other.
func TestDocumentedCodes(t *testing.T) {
	t.Parallel()
	documented := map[string]string{}
	for _, row := range table(t, "docs/json.md", "code", "exit", "HTTP", "when") {
		documented[strings.Trim(row[0], "`")] = row[1] + " " + row[2]
		if row[3] == "" {
			t.Errorf("%s does not say when", row[0])
		}
	}
	for _, c := range codes(t) {
		if got, want := documented[string(c)], fmt.Sprintf("%d %d", c.Exit(), c.HTTPStatus()); got != want {
			t.Errorf("%s is documented as %q, want %q", c, got, want)
		}
		delete(documented, string(c))
	}
	for c := range documented {
		t.Errorf("%s is documented and does not exist", c)
	}
}

func TestDocumentedExits(t *testing.T) {
	t.Parallel()
	// These exit statuses come without an error: success, a wait whose runs need the user, and
	// output whose reader has gone.
	exits := map[int]bool{agency.ExitOK: true, agency.ExitNeedsUser: true, agency.ExitInterrupted: true, agency.ExitBrokenPipe: true}
	for _, c := range codes(t) {
		exits[c.Exit()] = true
	}
	for _, row := range table(t, "docs/json.md", "exit", "meaning") {
		n, err := strconv.Atoi(row[0])
		if err != nil || !exits[n] {
			t.Errorf("the exit status %q is documented and no code has it", row[0])
		}
		delete(exits, n)
	}
	if len(exits) > 0 {
		t.Errorf("not documented: %v", exits)
	}
}

func TestErrorf(t *testing.T) {
	t.Parallel()
	err := agency.Errorf(agency.CodeInvalidPath, "read %s: %w", "a.txt", io.ErrUnexpectedEOF).
		WithHint("look at %s", "a.txt").WithDetail("path", "a.txt").WithDetail("size", 3)
	if err.Error() != "read a.txt: unexpected EOF" || err.Hint != "look at a.txt" || len(err.Details) != 2 {
		t.Errorf("got %+v", err)
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error("the cause is lost")
	}
}

func TestAsError(t *testing.T) {
	t.Parallel()
	if agency.AsError(nil) != nil {
		t.Error("no error became one")
	}
	inner := agency.Errorf(agency.CodeRunNotFound, "no run is called %q", "x").WithHint("agency ls").WithDetail("ref", "x")
	if agency.AsError(inner) != inner {
		t.Error("an error of agency is not itself")
	}
	wrapped := fmt.Errorf("show run: %w", inner)
	got := agency.AsError(wrapped)
	if got.Code != agency.CodeRunNotFound || got.Message != `show run: no run is called "x"` || got.Hint != "agency ls" || got.Details["ref"] != "x" {
		t.Errorf("got %+v", got)
	}
	if !errors.Is(got, inner) || inner.Message != `no run is called "x"` {
		t.Error("the inner error is lost or changed")
	}
	foreign := agency.AsError(io.ErrUnexpectedEOF)
	if foreign.Code != agency.CodeInternal || foreign.Message != "unexpected EOF" || !errors.Is(foreign, io.ErrUnexpectedEOF) {
		t.Errorf("got %+v", foreign)
	}
	if !agency.IsCode(wrapped, agency.CodeRunNotFound) || agency.IsCode(wrapped, agency.CodeUsage) || agency.IsCode(io.EOF, agency.CodeInternal) || agency.IsCode(nil, agency.CodeInternal) {
		t.Error("IsCode does not look into the chain")
	}
}

// An error that is wrapped in another code keeps its hint, unless the new one has a better hint.
func TestErrorfKeepsTheHint(t *testing.T) {
	t.Parallel()
	cause := agency.Errorf(agency.CodePermissionDenied, "no").WithHint("unlock it")
	if e := agency.Errorf(agency.CodeCleanupFailed, "remove: %w", cause); e.Hint != "unlock it" || e.Code != agency.CodeCleanupFailed {
		t.Errorf("got %+v", e)
	}
	if e := agency.Errorf(agency.CodeCleanupFailed, "remove: %w", cause).WithHint("try again"); e.Hint != "try again" {
		t.Errorf("got %+v", e)
	}
}

// A value of any length is quoted in an error, and the error stays short and whole.
func TestErrorsAreBounded(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{"x", `"`, "ü", "日本", "\xff"} {
		long := strings.Repeat(unit, 60_000)
		e := agency.Errorf(agency.CodeUsage, "the agent %q is unknown", long).WithHint("drop %s, or name another", long)
		for what, text := range map[string]string{
			"message": e.Message, "hint": e.Hint, "foreign": agency.AsError(errors.New("the agent " + long + " is unknown")).Message,
		} {
			if len(text) > agency.MessageLimit || (unit != "\xff" && !utf8.ValidString(text)) {
				t.Errorf("the %s of %q has %d bytes: %q", what, unit, len(text), text)
			}
		}
		if !strings.HasPrefix(e.Message, "the agent ") || !strings.HasSuffix(e.Message, " is unknown") || !strings.HasSuffix(e.Hint, ", or name another") {
			t.Errorf("the words are gone from %q and %q", e.Message, e.Hint)
		}
	}
}

// A missing resource of the system is not a defect of agency.
func TestExhausted(t *testing.T) {
	t.Parallel()
	for cause, want := range map[error]agency.Code{
		syscall.EMFILE: agency.CodeResources, syscall.ENFILE: agency.CodeResources, syscall.ENOMEM: agency.CodeResources,
		syscall.ENOSPC: agency.CodeResources, syscall.EIO: agency.CodeInternal,
	} {
		e := agency.AsError(fmt.Errorf("read started.json: %w", &fs.PathError{Op: "open", Path: "/x", Err: cause}))
		if e.Code != want || !strings.Contains(e.Message, "read started.json: open /x: ") || (e.Hint == "") != (want == agency.CodeInternal) {
			t.Errorf("%v: got %+v", cause, e)
		}
	}
}
