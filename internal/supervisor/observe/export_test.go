package observe

// The parts that decide something by themselves, for tests of all their cases.
var (
	NewReports    = newReports
	RecordProblem = recordProblem
)
