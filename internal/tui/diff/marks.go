package diff

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"

	"agency"
	"agency/internal/api"
)

// marksFile is the file in the directory of a run with the marks of what was reviewed: a line for
// each, "+ OBJECT PATH" or, when it was taken back, "- OBJECT PATH". Lines are only appended, each in
// one write, so that several dashboards can do it.
const marksFile = "reviewed"

// mostMarks is how many bytes of marks are read.
const mostMarks = 4 << 20

// marks are the reviewed files, each with its content: a file that changes has no mark.
type marks map[string]bool

func key(f *agency.FileDiff) string { return f.Object + " " + f.Path }

type marksMsg struct {
	run   agency.RunID
	dir   string
	marks marks
	err   error
}

type keptMsg struct {
	run agency.RunID
	err error
}

// readMarks asks for the directory of the run, and reads its marks.
func (p *Page) readMarks() tea.Cmd {
	d, ctx, run := &p.desk.Daemon, p.desk.Ctx, p.run.ID
	return func() tea.Msg {
		resp, err := d.ListRuns(ctx, api.ListRunsRequest{Run: string(run), Removed: true, Fields: []string{"run_dir"}})
		if err != nil || len(resp.Runs) != 1 {
			return marksMsg{run: run, err: err}
		}
		dir := resp.Runs[0].RunDir
		read, err := marksIn(dir)
		return marksMsg{run, dir, read, err}
	}
}

// keep appends the mark of a file, or that it was taken back.
func (p *Page) keep(f *agency.FileDiff, reviewed bool) tea.Cmd {
	sign := "-"
	if reviewed {
		sign = "+"
	}
	run, dir, line := p.run.ID, p.dir, fmt.Sprintf("%s %s %q\n", sign, f.Object, f.Path)
	return func() tea.Msg { return keptMsg{run, appendMark(dir, line)} }
}

// marksIn returns the marks in the directory of a run.
func marksIn(dir string) (marks, error) {
	data, err := readFile(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, agency.Errorf(agency.CodeInvalidState, "what was reviewed before cannot be read: %w", err)
	}
	read := marks{}
	for line := range strings.Lines(string(data)) {
		sign, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		object, quoted, _ := strings.Cut(rest, " ")
		path, err := strconv.Unquote(quoted)
		if err != nil {
			continue // half of a line, of a machine that stopped
		}
		if k := object + " " + path; sign == "+" {
			read[k] = true
		} else {
			delete(read, k)
		}
	}
	return read, nil
}

func readFile(dir string) ([]byte, error) {
	f, err := openMarks(dir, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, mostMarks))
}

func appendMark(dir, line string) error {
	f, err := openMarks(dir, os.O_WRONLY|os.O_APPEND|os.O_CREATE)
	if err == nil {
		_, err = f.WriteString(line)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return agency.Errorf(agency.CodeInvalidState, "the mark ends with this page, it cannot be kept: %w", err)
	}
	return nil
}

// openMarks opens the file of marks, which is a file or not there yet.
func openMarks(dir string, flag int) (*os.File, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	if info, err := root.Lstat(marksFile); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s in %s is not a file", marksFile, dir)
	}
	return root.OpenFile(marksFile, flag, 0o600)
}
