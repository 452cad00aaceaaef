package git

import (
	"context"
	"strconv"
	"strings"
)

// The parsers, for the fuzz tests.
var (
	ParseStatus    = parseStatus
	ParseWorktrees = parseWorktrees
	ParseSnapshots = parseSnapshots
	LastLine       = lastLine
)

// SpecialFiles returns the repositories and the doubted files of an index, and whether it has a
// conflict, as agency reads it, and as it understands the answer of ls-files.
func SpecialFiles(index, listed string) (read, asked [3]string, ok bool) {
	of := func(e entries) [3]string {
		return [3]string{strings.Join(e.links, "\x00"), strings.Join(e.assumed, "\x00"), strconv.FormatBool(e.unmerged)}
	}
	e, ok := readIndex(index)
	return of(e), of(parseEntries(listed)), ok
}

// ReadsIndex reports whether agency reads an index without a git.
func ReadsIndex(data []byte) bool {
	_, ok := parseIndex(data)
	return ok
}

// Says runs a git that prints words on its standard error and exits with 0. complete is the option
// of the call.
func (g *Git) Says(ctx context.Context, dir, words string, complete bool) error {
	script := "alias.says=!printf '%s' \"" + words + "\" >&2"
	_, err := g.do(ctx, call{dir: dir, complete: complete, settings: []string{script}, args: []string{"says"}})
	return err
}

// Runs runs a script as a git, and returns what it wrote to its standard output.
func (g *Git) Runs(ctx context.Context, dir, script string) (string, error) {
	return g.do(ctx, call{dir: dir, settings: []string{"alias.runs=!" + script}, args: []string{"runs"}})
}

// UUID reports whether s is an identity.
func UUID(s string) bool { return isID(s) }

// Ref is a ref of the repository with that git common directory.
func Ref(commonDir, ref string) refOf { return refOf{commonDir, ref} }

// Claim claims a ref as a git of agency does; end does what the death of that git does.
func (g *Git) Claim(ctx context.Context, writes refOf) (end func() error, err error) {
	c, err := g.claim(ctx, writes)
	if err != nil {
		return nil, err
	}
	return c.Close, nil
}
