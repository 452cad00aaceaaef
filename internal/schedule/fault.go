package schedule

import (
	"agency"
)

// faultKind is whose fault it is that an attempt ended or could not begin.
type faultKind int

const (
	ownFault     faultKind = iota // the agent's, which uses up a retry
	loss                          // an attempt that had begun was lost
	machineFault                  // the fault of the machine or its surroundings: the start is tried again, patiently
	notItsTurn                    // the repository accepts no run now
	needsUser                     // the user must decide
)

// faultOf returns the fault behind a code. ran reports whether the program of the attempt was
// started.
func faultOf(code agency.Code, ran bool) faultKind {
	switch code {
	case agency.CodeRunnerDisappeared, agency.CodeStartCutOff:
		return loss
	case agency.CodeDBError, agency.CodeDBLocked, agency.CodeDBMissing, agency.CodeDiskLow, agency.CodeInternal, agency.CodeWorktreeFailed, agency.CodeGitNotFound, agency.CodeGitFailed, agency.CodeResources, agency.CodeTmuxNotFound, agency.CodeTmuxFailed, agency.CodeTmuxStartFailed,
		agency.CodeTmuxSessionNotFound, agency.CodePermissionDenied, agency.CodeConfigInvalid, agency.CodeNotGitRepo, agency.CodeCleanupFailed, agency.CodeDaemonConnectFailed,
		agency.CodeSandboxUnavailable:
		if ran {
			return loss // otherwise it could begin and be lost forever
		}
		return machineFault
	case agency.CodeRepoBusy:
		return notItsTurn
	case agency.CodeTrustRequired, agency.CodeMergeConflict, agency.CodeResultGone, agency.CodeBadRef:
		return needsUser
	default:
		return ownFault
	}
}

// WaitsForUser reports whether a start that failed with a code is tried again only after the
// user's decision.
func WaitsForUser(c agency.Code) bool { return faultOf(c, false) == needsUser }
