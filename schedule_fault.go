package agency

// fault says by whose fault an attempt ended, or could not begin.
type fault int

const (
	ownFault     fault = iota // the agent's, which spends a retry
	loss                      // nobody's, of an attempt that had begun
	machineFault              // that of where it runs: the start is tried again, patiently
	notItsTurn                // the repository takes no run now
	needsPerson               // somebody has to decide
)

// faultOf is the fault behind a code. ran says that the program of the attempt was started.
func faultOf(code Code, ran bool) fault {
	switch code {
	case CodeRunnerDisappeared, CodeStartCutOff:
		return loss
	case CodeDBError, CodeDBLocked, CodeDBMissing, CodeDiskLow, CodeInternal, CodeWorktreeFailed, CodeGitNotFound, CodeGitFailed, CodeResources, CodeTmuxNotFound, CodeTmuxFailed, CodeTmuxStartFailed,
		CodeTmuxSessionNotFound, CodePermissionDenied, CodeConfigInvalid, CodeNotGitRepo, CodeCleanupFailed, CodeDaemonConnectFailed:
		if ran {
			return loss // or it could begin and be lost for ever
		}
		return machineFault
	case CodeRepoBusy:
		return notItsTurn
	case CodeTrustRequired, CodeMergeConflict, CodeResultGone, CodeBadRef:
		return needsPerson
	default:
		return ownFault
	}
}

// WaitsForPerson reports whether a start that failed with a code is only tried again when a person has decided.
func WaitsForPerson(c Code) bool { return faultOf(c, false) == needsPerson }
