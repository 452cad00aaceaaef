// Package contract strictly reads the status file that an agent writes, runner_status.json. It is
// pure.
package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"agency"
	"agency/internal/plain"
)

// Parse reads a contract strictly and validates it; its lists are never nil. The error gives the
// reason in a few words; it quotes at most a short piece of the text.
func Parse(data []byte) (agency.Contract, error) {
	var c agency.Contract
	if len(data) > agency.ContractLimit {
		return c, fmt.Errorf("larger than %d bytes", agency.ContractLimit)
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
		return agency.Contract{}, jsonProblem(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return agency.Contract{}, errors.New("more than one JSON value")
	}
	if err := checkKeys(data); err != nil {
		return agency.Contract{}, err
	}
	if err := validate(&c); err != nil {
		return agency.Contract{}, err
	}
	for _, list := range []*[]string{&c.Questions, &c.Blockers, &c.Risks} {
		if *list == nil {
			*list = []string{}
		}
	}
	return c, nil
}

// validate checks what a status requires: always a summary, questions for needs_input, blockers for
// blocked, how_to_test for ready_for_review.
func validate(c *agency.Contract) error {
	if c.SchemaVersion != agency.ContractVersion {
		return fmt.Errorf("schema_version is %q, not %q", plain.Clip(c.SchemaVersion), agency.ContractVersion)
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
	case agency.ReportedWorking, agency.ReportedNeedsInput, agency.ReportedBlocked, agency.ReportedReadyForReview:
	default:
		return fmt.Errorf("status %q is none of working, needs_input, blocked, ready_for_review", plain.Clip(string(c.Status)))
	}
	switch {
	case blank(c.Summary):
		return errors.New("summary is missing")
	case c.Status == agency.ReportedNeedsInput && none(c.Questions):
		return errors.New("needs_input without questions")
	case c.Status == agency.ReportedBlocked && none(c.Blockers):
		return errors.New("blocked without blockers")
	case c.Status == agency.ReportedReadyForReview && blank(c.HowToTest):
		return errors.New("ready_for_review without how_to_test")
	}
	return nil
}

// jsonProblem returns what is wrong with a document in words for users, without Go type names.
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
		return fmt.Errorf("unknown key %s", plain.Clip(key))
	}
	return errors.New("not readable as JSON")
}

// contractKeys are the keys of the contract.
var contractKeys = []string{"schema_version", "status", "updated_at", "summary", "questions", "blockers", "how_to_test", "risks"}

// checkKeys refuses keys in the wrong case and duplicate keys, which the decoder accepts. data is
// one object.
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
			return fmt.Errorf("key %q is there twice", plain.Clip(key))
		case !slices.Contains(contractKeys, key):
			return fmt.Errorf("unknown key %q", plain.Clip(key))
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
