package git

import "context"

// The parsers, for the fuzz tests.
var (
	ParseStatus    = parseStatus
	ParseWorktrees = parseWorktrees
	ParseSnapshots = parseSnapshots
	LastLine       = lastLine
)

// Says runs a git that ends well, after it has said something on its standard error. complete is of the call.
func (g *Git) Says(ctx context.Context, dir, words string, complete bool) error {
	script := "alias.says=!printf '%s' \"" + words + "\" >&2"
	_, err := g.do(ctx, call{dir: dir, complete: complete, settings: []string{script}, args: []string{"says"}})
	return err
}

// UUID says whether s is an identity.
func UUID(s string) bool { return isID(s) }

// Ref is a ref of the repository with that git common directory.
func Ref(commonDir, ref string) refOf { return refOf{commonDir, ref} }

// Claim is as the claim of a git; end is its death.
func (g *Git) Claim(ctx context.Context, writes refOf) (end func() error, err error) {
	c, err := g.claim(ctx, writes)
	if err != nil {
		return nil, err
	}
	return c.Close, nil
}
