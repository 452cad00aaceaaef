package agency

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Where agency keeps its files in a worktree, relative to it.
const (
	DotDir           = ".agency"
	PromptFile       = ".agency/prompt.md"
	InstructionsFile = ".agency/INSTRUCTIONS.md"
	ReportFile       = ".agency/report.md"
	StateDir         = ".agency/state"
	ContractFile     = ".agency/state/runner_status.json"
	ReportsFile      = ".agency/state/reports.jsonl" // what agency report adds to the contract, one line each
	AttemptFile      = ".agency/state/attempt"       // number of the attempt that works here; there is none for the first
)

// ContractLimit is the largest contract file that is read, in bytes.
const ContractLimit = 64 << 10

// ReportsLimit is the largest file of reports that is read, in bytes.
const ReportsLimit = 1 << 20

// MaxQuiet is the longest silence that an agent may declare.
const MaxQuiet = 24 * time.Hour

// ContractVersion is the schema_version of the contract.
const ContractVersion = "1.0"

// Word is what a runner says of itself.
type Word string

// The words of the contract.
const (
	SaysWorking        Word = "working"
	SaysNeedsInput     Word = "needs_input"
	SaysBlocked        Word = "blocked"
	SaysReadyForReview Word = "ready_for_review"
)

// Words are all words of the contract.
func Words() []Word { return []Word{SaysWorking, SaysNeedsInput, SaysBlocked, SaysReadyForReview} }

// Contract is the runner's own word on how it is doing: the content of runner_status.json. It is untrusted text;
// what shows it must make it safe for a terminal first.
type Contract struct {
	SchemaVersion string   `json:"schema_version"`
	Status        Word     `json:"status"`
	UpdatedAt     string   `json:"updated_at"` // as the runner wrote it; nothing is decided by it
	Summary       string   `json:"summary"`
	Questions     []string `json:"questions"`
	Blockers      []string `json:"blockers"`
	HowToTest     string   `json:"how_to_test"`
	Risks         []string `json:"risks"`
}

// startingWork is what agency itself says for an agent that has said nothing yet.
const startingWork = "Starting work"

// OwnWord is the newest contract that the agent of an attempt wrote itself; nil when it wrote none, or none that can be read. What
// agency wrote for it before it started says nothing of it.
func (a *Attempt) OwnWord() *Contract {
	c := a.Word.Contract
	if c != nil && c.Status == SaysWorking && c.Summary == startingWork && c.UpdatedAt == NewContract(a.CreatedAt).UpdatedAt {
		return nil
	}
	return c
}

// NewContract is the first contract of an attempt, which agency writes before the runner starts.
func NewContract(at time.Time) Contract {
	return Contract{
		SchemaVersion: ContractVersion,
		Status:        SaysWorking,
		UpdatedAt:     at.UTC().Format(time.RFC3339),
		Summary:       startingWork,
		Questions:     []string{},
		Blockers:      []string{},
		Risks:         []string{},
	}
}

// ParseContract reads a contract strictly and validates it; its lists are never nil. The error says in a few words what
// is wrong; it quotes at most a short piece of the text.
func ParseContract(data []byte) (Contract, error) {
	var c Contract
	if len(data) > ContractLimit {
		return c, fmt.Errorf("larger than %d bytes", ContractLimit)
	}
	if !utf8.Valid(data) {
		return c, errors.New("not valid UTF-8")
	}
	if err := checkDepth(data, 4); err != nil {
		return c, err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil {
		return Contract{}, jsonProblem(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return Contract{}, errors.New("more than one JSON value")
	}
	if err := checkKeys(data); err != nil {
		return Contract{}, err
	}
	if err := c.Validate(); err != nil {
		return Contract{}, err
	}
	for _, list := range []*[]string{&c.Questions, &c.Blockers, &c.Risks} {
		if *list == nil {
			*list = []string{}
		}
	}
	return c, nil
}

// Validate checks what a status requires: always a summary, questions for needs_input, blockers for blocked,
// how_to_test for ready_for_review.
func (c *Contract) Validate() error {
	if c.SchemaVersion != ContractVersion {
		return fmt.Errorf("schema_version is %q, not %q", Clip(c.SchemaVersion), ContractVersion)
	}
	blank := func(s string) bool { return strings.TrimSpace(s) == "" }
	none := func(list []string) bool {
		for _, s := range list {
			if !blank(s) {
				return false
			}
		}
		return true
	}
	switch c.Status {
	case SaysWorking, SaysNeedsInput, SaysBlocked, SaysReadyForReview:
	default:
		return fmt.Errorf("status %q is none of working, needs_input, blocked, ready_for_review", Clip(string(c.Status)))
	}
	switch {
	case blank(c.Summary):
		return errors.New("summary is missing")
	case c.Status == SaysNeedsInput && none(c.Questions):
		return errors.New("needs_input without questions")
	case c.Status == SaysBlocked && none(c.Blockers):
		return errors.New("blocked without blockers")
	case c.Status == SaysReadyForReview && blank(c.HowToTest):
		return errors.New("ready_for_review without how_to_test")
	}
	return nil
}

// jsonProblem says what is wrong with a document in words for people, without Go type names.
func jsonProblem(err error) error {
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	switch {
	case errors.As(err, &typ):
		switch typ.Field {
		case "":
			return errors.New("the document must be an object")
		case "questions", "blockers", "risks":
			return fmt.Errorf("%s must be a list of texts", typ.Field)
		default:
			return fmt.Errorf("%s must be text", typ.Field)
		}
	case errors.As(err, &syntax):
		return fmt.Errorf("not JSON at byte %d", syntax.Offset)
	case errors.Is(err, io.EOF):
		return errors.New("empty")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("cut off in the middle")
	}
	if key, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return fmt.Errorf("unknown key %s", Clip(key))
	}
	return errors.New("not readable as JSON")
}

// contractKeys are the keys of the contract.
var contractKeys = []string{"schema_version", "status", "updated_at", "summary", "questions", "blockers", "how_to_test", "risks"}

// checkKeys refuses keys in the wrong case and keys that stand twice, both of which the decoder takes. data is one object.
func checkKeys(data []byte) error {
	dec, seen := json.NewDecoder(bytes.NewReader(data)), map[string]bool{}
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return errors.New("the document must be an object")
	}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return jsonProblem(err)
		}
		key, _ := token.(string)
		switch {
		case seen[key]:
			return fmt.Errorf("key %q stands twice", Clip(key))
		case !slices.Contains(contractKeys, key):
			return fmt.Errorf("unknown key %q", Clip(key))
		}
		seen[key] = true
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return jsonProblem(err)
		}
	}
	return nil
}

// checkDepth refuses deep nesting before a decoder spends time on it.
func checkDepth(data []byte, limit int) error {
	depth, inString, escaped := 0, false, false
	for _, b := range data {
		switch {
		case escaped:
			escaped = false
		case inString && b == '\\':
			escaped = true
		case b == '"':
			inString = !inString
		case inString:
		case b == '{' || b == '[':
			if depth++; depth > limit {
				return errors.New("nested too deeply")
			}
		case b == '}' || b == ']':
			depth--
		}
	}
	return nil
}

// Clip returns the beginning of a text of another, as much as a message has room for.
func Clip(s string) string {
	const most = 40
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
