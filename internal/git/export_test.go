package git

// The parsers, for the fuzz tests.
var (
	ParseStatus    = parseStatus
	ParseWorktrees = parseWorktrees
	ParseSnapshots = parseSnapshots
	LastLine       = lastLine
)

// UUID says whether s is an identity.
func UUID(s string) bool { return uuid.MatchString(s) }
