package schedule

import (
	"agency"
)

// fault says by whose fault an attempt ended, or could not begin.
type faultKind int

const (
	ownFault     faultKind = iota // the agent's, which spends a retry
	loss                          // nobody's, of an attempt that had begun
	machineFault                  // that of where it runs: the start is tried again, patiently
	notItsTurn                    // the repository takes no run now
	needsPerson                   // somebody has to decide
)

// faultOf is the fault behind a code. ran says that the program of the attempt was started.
func faultOf(code agency.Code, ran bool) faultKind {
	switch code {
	case agency.CodeRunnerDisappeared, agency.CodeStartCutOff:
		return loss
	case agency.CodeDBError, agency.CodeDBLocked, agency.CodeDBMissing, agency.CodeDiskLow, agency.CodeInternal, agency.CodeWorktreeFailed, agency.CodeGitNotFound, agency.CodeGitFailed, agency.CodeResources, agency.CodeTmuxNotFound, agency.CodeTmuxFailed, agency.CodeTmuxStartFailed,
		agency.CodeTmuxSessionNotFound, agency.CodePermissionDenied, agency.CodeConfigInvalid, agency.CodeNotGitRepo, agency.CodeCleanupFailed, agency.CodeDaemonConnectFailed:
		if ran {
			return loss // or it could begin and be lost for ever
		}
		return machineFault
	case agency.CodeRepoBusy:
		return notItsTurn
	case agency.CodeTrustRequired, agency.CodeMergeConflict, agency.CodeResultGone, agency.CodeBadRef:
		return needsPerson
	default:
		return ownFault
	}
}

// WaitsForPerson reports whether a start that failed with a code is only tried again when a person has decided.
func WaitsForPerson(c agency.Code) bool { return faultOf(c, false) == needsPerson }
