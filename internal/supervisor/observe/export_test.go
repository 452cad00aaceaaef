package observe

// Internals with many cases, for direct tests.
var (
	NewReports    = newReports
	RecordProblem = recordProblem
)
