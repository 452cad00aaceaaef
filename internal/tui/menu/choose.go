package menu

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// The letters that are the same everywhere.
const (
	again = "r"
	back  = "b"
	leave = "q"
	help  = "?"
)

// letter is what a user types in place of a number.
type letter struct {
	key   string
	short string // in the prompt; empty keeps it out
	does  string // in the help
}

// The letters of every question below the list of runs.
var (
	goBack  = letter{back, "back", "back to where you came from"}
	goAgain = letter{again, "", "the rows again; an empty line too"}
	goAway  = letter{leave, "", "leave; the runs continue"}
	inside  = []letter{goBack, goAgain, goAway}
)

// question is what the user is asked for: the number of a row, or a letter.
type question struct {
	what    string
	rows    int
	several bool // several numbers, with spaces between them, are an answer too
	letters []letter
}

// choice is the answer to a question: rows, or a letter and the text after it.
type choice struct {
	rows   []int
	letter string
	rest   string
}

// pick asks until the user gives an answer. An empty line means the letter r.
func (con *console) pick(ctx context.Context, q *question) (choice, error) {
	prompt := []string{q.what}
	for _, l := range append(slices.Clone(q.letters), letter{help, "help", ""}) {
		if l.short != "" {
			prompt = append(prompt, l.key+": "+l.short)
		}
	}
	for {
		line, err := con.command(ctx, strings.Join(prompt, ", "))
		if err != nil {
			return choice{}, err
		}
		if line == "" {
			line = again
		}
		for _, l := range q.letters {
			if rest, ok := strings.CutPrefix(line, l.key); ok && (rest == "" || l.key == "/") {
				return choice{letter: l.key, rest: strings.TrimSpace(rest)}, nil
			}
		}
		if rows, ok := numbers(line, q); ok {
			return choice{rows: rows}, nil
		}
		if line != help {
			con.say("%q is not a number of the list, and no letter; ? says what there is", line)
			continue
		}
		for _, l := range q.letters {
			con.say("%s: %s", l.key, l.does)
		}
	}
}

// numbers returns the indexes of the rows that a line names.
func numbers(line string, q *question) ([]int, bool) {
	rows := []int{}
	for word := range strings.FieldsSeq(line) {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > q.rows {
			return nil, false
		}
		if !slices.Contains(rows, n-1) {
			rows = append(rows, n-1)
		}
	}
	return rows, len(rows) == 1 || q.several && len(rows) > 0
}

// choose prints numbered rows, and asks for one of them, or for a letter. One letter goes back, and
// one prints the rows again.
func (con *console) choose(ctx context.Context, what string, rows []string, letters ...letter) (choice, error) {
	letters = append(slices.Clone(letters), inside...)
	for i, row := range rows {
		con.say("%d. %s", i+1, row)
	}
	return con.pick(ctx, &question{what: what, rows: len(rows), letters: letters})
}

// rows are numbered rows and what happens when the user chooses one of them, or a letter.
type rows struct {
	texts   []string
	letters []letter
	open    func(c choice) error
}

// browse prints rows and opens the one that the user chooses, until the user goes back. Each time the
// rows are read again. none is printed when there are none.
func (con *console) browse(ctx context.Context, what, none string, read func() (rows, error)) error {
	for {
		rows, err := read()
		switch {
		case err != nil:
			return con.fail(err)
		case len(rows.texts) == 0:
			con.say("%s", none)
			return nil
		}
		c, err := con.choose(ctx, what, rows.texts, rows.letters...)
		if err != nil || c.letter == back {
			return err
		}
		if c.letter == again {
			continue
		}
		if err := rows.open(c); err != nil {
			return err
		}
	}
}

// pageRows is how many rows of a long text are printed at once.
const pageRows = 20

// pages prints a long text, some rows at a time, from its beginning. With newestLast it prints the end
// first, and then the rows before it.
func (con *console) pages(ctx context.Context, lines []string, newestLast bool) error {
	if len(lines) == 0 {
		con.say("there is nothing")
	}
	for len(lines) > 0 {
		n, more := min(pageRows, len(lines)), "more"
		part, rest := lines[:n], lines[n:]
		if newestLast {
			part, rest, more = lines[len(lines)-n:], lines[:len(lines)-n], "earlier"
		}
		for _, line := range part {
			con.sayCode(line)
		}
		if lines = rest; len(lines) == 0 {
			break
		}
		c, err := con.pick(ctx, &question{what: fmt.Sprintf("%d %s rows, an empty line: read on", len(lines), more), letters: []letter{{again, "", "read on; an empty line too"}, goBack, goAway}})
		if err != nil || c.letter == back {
			return err
		}
	}
	return nil
}

// entry is a setting of a run or a session that the user can change before the start.
type entry struct {
	name  string
	empty string // what an empty value means
	value *string
}

// text returns the entry as a row.
func (e *entry) text() string {
	return e.name + ": " + cmp.Or(*e.value, e.empty)
}

// fill lets the user change entries, and calls start when the user chooses that, until start reports
// that it is done. does names what start does. fill prints the rows again only when the user asks for
// them: their numbers stay.
func (con *console) fill(ctx context.Context, does string, entries []entry, start func() (bool, error)) error {
	what := "1 to " + does + ", or number of what to change"
	for told := false; ; {
		c, err := choice{}, error(nil)
		if told {
			c, err = con.pick(ctx, &question{what: what, rows: 1 + len(entries), letters: inside})
		} else {
			texts := []string{does}
			for i := range entries {
				texts = append(texts, entries[i].text())
			}
			c, err = con.choose(ctx, what, texts)
		}
		told = c.letter != again
		switch {
		case err != nil || c.letter == back:
			return err
		case !told:
		case c.rows[0] == 0:
			if done, err := start(); done || err != nil {
				return err
			}
		default:
			e := &entries[c.rows[0]-1]
			value, err := con.line(ctx, e.name+", an empty line: "+e.empty)
			if err != nil {
				return err
			}
			*e.value = strings.TrimSpace(value)
			con.say("%s", e.text())
		}
	}
}
