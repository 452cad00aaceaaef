package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"agency"
)

// problem is one thing that is wrong, and where: at a place of the file, or in a variable.
type problem struct {
	at       position
	variable string
	text     string
	hint     string
}

func (p problem) message(path string) string {
	text := printable(p.text) // it may quote the file
	switch {
	case p.variable != "":
		return p.variable + " " + text
	case p.at.line == 0:
		return path + ": " + text
	default:
		return fmt.Sprintf("%s:%d:%d: %s", path, p.at.line, p.at.column, text)
	}
}

// problems are everything that is wrong with a configuration.
type problems []problem

func (list *problems) add(more ...problem) { *list = append(*list, more...) }

// on says that something on the line was found already.
func (list problems) on(line int) bool {
	return slices.ContainsFunc(list, func(p problem) bool { return p.at.line == line })
}

// err is the error for a list that is not empty: the first problem of the file, or else of the environment.
func (list problems) err(path string) error {
	slices.SortStableFunc(list, func(a, b problem) int {
		return cmp.Or(
			cmp.Compare(len(a.variable), len(b.variable)),
			cmp.Compare(a.at.line, b.at.line),
			cmp.Compare(a.at.column, b.at.column),
		)
	})
	all := make([]string, 0, len(list))
	for _, p := range list {
		line := p.message(path)
		if p.hint != "" {
			line += " (" + p.hint + ")"
		}
		all = append(all, line)
	}
	first := agency.Errorf(agency.CodeConfigInvalid, "%s", list[0].message(path)).WithDetail("problems", all)
	first.Hint = list[0].hint
	return first
}

func didYouMean(name string) string {
	if name == "" {
		return ""
	}
	return "did you mean " + named(name) + "?"
}

// printable replaces what a terminal would not show as it is.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '\uFFFD'
	}, s)
}
