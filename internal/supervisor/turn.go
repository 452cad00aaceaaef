package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"agency"
	"agency/internal/file"
)

// The files of a run directory that hold how its worktree was when its agent rested. They are made
// only for diffs, so a crash may lose them.
const (
	turnsFile = "turns.json"
	turnsDir  = "turns" // a folder of objects for each tree
)

// turns are two moments at which an agent rested: since At, after a turn, and before that turn.
type turns struct {
	At     time.Time `json:"at"`
	Before *rested   `json:"before"` // nil when that was the run's first turn
	After  *rested   `json:"after"`
	Lost   bool      `json:"lost"` // what was kept before could not be read, so that Before is not known
}

// rested is how a worktree was when its agent rested.
type rested struct {
	Tree    string `json:"tree"`
	Objects string `json:"objects"` // the name of a folder in turnsDir
}

// restOf returns since when the agent of a run rests. rests is false while the agent is in a turn,
// even if it asks for something there.
func restOf(r *agency.Run) (since time.Time, rests bool) {
	a := &r.Attempt
	switch {
	case a.AgentState.Turn == agency.TurnEnded:
		return a.AgentState.TurnAt, true
	case a.EndedAt != nil:
		return *a.EndedAt, true
	default:
		return time.Time{}, false
	}
}

// keepTurn saves the state of the worktree of a run, if its agent rests before and after that. It
// replaces what it saved earlier in the same rest.
func (w *Work) keepTurn(ctx context.Context, r *agency.Run, now func() (*agency.Run, error)) error {
	since, rests := restOf(r)
	if !rests || isGone(r.Worktree) {
		return nil
	}
	t, err := readTurns(r)
	if err != nil {
		t = &turns{Lost: true}
	}
	dir := filepath.Join(r.Dir, turnsDir)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	objects, err := os.MkdirTemp(dir, "")
	if err != nil {
		return err
	}
	tree, err := w.git.KeepTree(ctx, r.Repo, r.Worktree, objects)
	if err != nil {
		return errors.Join(err, os.RemoveAll(objects))
	}
	after, err := now()
	if err != nil || after.RemovedAt != nil || after.Removing != nil {
		return errors.Join(err, os.RemoveAll(objects))
	}
	same := t.After != nil && t.After.Tree == tree && since.Equal(t.At)
	if at, rests := restOf(after); !rests || !at.Equal(since) || same { // the tree may have a part of the next turn
		return os.RemoveAll(objects)
	}
	if !since.Equal(t.At) {
		t.At, t.Before = since, t.After
		t.Lost = t.Lost && t.Before == nil
	}
	t.After = &rested{Tree: tree, Objects: filepath.Base(objects)}
	data, err := json.Marshal(t)
	if err == nil {
		err = file.WriteAtomic(filepath.Join(r.Dir, turnsFile), data)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(objects))
	}
	return removeOtherTurns(dir, t)
}

// removeTurns removes what is kept of a run's turns.
func removeTurns(r *agency.Run) error {
	return errors.Join(os.RemoveAll(filepath.Join(r.Dir, turnsFile)), os.RemoveAll(filepath.Join(r.Dir, turnsDir)))
}

// removeOtherTurns removes the objects of earlier turns, and of what a crash left.
func removeOtherTurns(dir string, t *turns) error {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.Name() != t.After.Objects && (t.Before == nil || e.Name() != t.Before.Objects) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// readTurns returns what is kept of a run's turns. Without the file nothing was kept; a damaged file is
// an error.
func readTurns(r *agency.Run) (*turns, error) {
	var t turns
	data, err := file.ReadRegular(filepath.Join(r.Dir, turnsFile), 1<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return &t, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &t)
	}
	if err == nil && (t.After == nil || !t.After.valid() || t.Before != nil && !t.Before.valid()) {
		err = errors.New("it names no tree")
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", turnsFile, err)
	}
	return &t, nil
}

func (t *rested) valid() bool {
	return objectName.MatchString(t.Tree) && filepath.Base(t.Objects) == t.Objects && filepath.IsLocal(t.Objects)
}

// objectName is git's name of an object.
var objectName = regexp.MustCompile("^[0-9a-f]{40,64}$")

// lastTurn returns the tree with which to compare a run for what its last turn changed, and the folder
// with the objects of the tree. Both are empty when the agent had not rested before that turn: then the
// run's commit takes the place of the tree. The error is E_INVALID_STATE when the tree is not known, as
// for a removed run.
func lastTurn(r *agency.Run) (tree, objects string, err error) {
	if r.RemovedAt != nil {
		return "", "", agency.Errorf(agency.CodeInvalidState, "%s is removed, and with it how its worktree was before its last turn", r.Ref()).
			WithHint("all of its work: agency diff %s", r.Ref())
	}
	t, err := readTurns(r)
	if err != nil {
		t = &turns{Lost: true}
	}
	before := t.After // its present turn began after that
	if since, rests := restOf(r); rests && since.Equal(t.At) {
		before = t.Before
	}
	if before == nil && t.Lost {
		return "", "", agency.Errorf(agency.CodeInvalidState, "how the worktree of %s was before its last turn is lost", r.Ref()).
			WithHint("all of its work: agency diff %s; the next turn is known again", r.Ref())
	}
	if before == nil {
		return "", "", nil
	}
	return before.Tree, filepath.Join(r.Dir, turnsDir, before.Objects), nil
}
