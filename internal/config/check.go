package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"agency"
	"agency/internal/document"
)

// mostChecks is the most checks that a repository may list.
const mostChecks = 50

// checksKey binds the list of tables [[check]]. It adds the problems of its tables to those of the
// file.
func checksKey(f *format, p *[]agency.Check) key {
	read := func(v *document.Value) ([]agency.Check, error) {
		switch {
		case v.Kind != document.List:
			return nil, document.Hinted(fmt.Errorf("must be a list of tables, not %s", v.Words()), "begin each check with a line [[check]]")
		case len(v.Items) > mostChecks:
			return nil, fmt.Errorf("must have at most %d checks, not %d", mostChecks, len(v.Items))
		}
		checks := make([]agency.Check, 0, len(v.Items))
		for _, item := range v.Items {
			if item.Kind != document.Table {
				return nil, document.Hinted(fmt.Errorf("must be a list of tables, but holds %s", item.Words()), "begin each check with a line [[check]]")
			}
			c, err := readCheck(f, item)
			if err == nil && slices.ContainsFunc(checks, func(other agency.Check) bool { return c.Name != "" && other.Name == c.Name }) {
				err = &document.Problem{At: item.At, Text: fmt.Sprintf("has the name %s twice", quote(c.Name)), Hint: "each check needs a name of its own"}
			}
			if err != nil {
				return nil, err
			}
			checks = append(checks, c)
		}
		return checks, nil
	}
	return keyOf("check", p, read, func(checks []agency.Check) string { return strconv.Itoa(len(checks)) })
}

// readCheck reads one table [[check]].
func readCheck(f *format, table *document.Value) (agency.Check, error) {
	c := agency.Check{Timeout: agency.DefaultCheckTimeout}
	own := emptyFormat(f.found.Name)
	own.found = f.found
	own.table("", "check",
		textKey("name", &c.Name, checkCheckName),
		commandKey("run", &c.Run),
		durationKey("timeout", &c.Timeout, time.Second, 24*time.Hour),
		numberKey("retries", &c.Retries, 1, 0, 10),
		listKey("files", &c.Files, checkLocal),
	)
	before := f.found.Len()
	own.read("check", table)
	lacks := func(key, example string) error {
		return &document.Problem{At: table.At, Text: "needs " + key, Hint: example}
	}
	switch {
	case f.found.Len() > before: // it has problems already
		return c, nil
	case c.Name == "":
		return c, lacks("a name", `name = "test"`)
	case c.Run == nil:
		return c, lacks("a program", `run = ["make", "test"]`)
	}
	return c, nil
}

func checkCheckName(s string) error {
	if err := agency.CheckWord("check name", s); err != nil {
		return document.Hinted(errors.New("must be one word, not "+quote(clip(s))), agency.AsError(err).Hint)
	}
	return nil
}
