package agency

import (
	"errors"
	"fmt"
	"net/http"
	"syscall"
	"unicode/utf8"
)

// Code names one kind of failure. Codes are stable: scripts match on them.
type Code string

// The codes that agency reports.
const (
	CodeUsage               Code = "E_USAGE"
	CodeNotGitRepo          Code = "E_NOT_GIT_REPO"
	CodeEmptyRepo           Code = "E_EMPTY_REPO"
	CodeBadRef              Code = "E_BAD_REF"
	CodeInvalidPath         Code = "E_INVALID_PATH"
	CodeInputNotFile        Code = "E_INPUT_NOT_FILE"
	CodeSpecInvalid         Code = "E_SPEC_INVALID"
	CodeConfigInvalid       Code = "E_CONFIG_INVALID"
	CodeGitNotFound         Code = "E_GIT_NOT_FOUND"
	CodeGitFailed           Code = "E_GIT_FAILED"
	CodeSandboxUnavailable  Code = "E_SANDBOX_UNAVAILABLE"
	CodeTmuxNotFound        Code = "E_TMUX_NOT_FOUND"
	CodeTmuxFailed          Code = "E_TMUX_FAILED"
	CodeTmuxStartFailed     Code = "E_TMUX_START_FAILED"
	CodeTmuxSessionNotFound Code = "E_TMUX_SESSION_NOT_FOUND"
	CodeWorktreeFailed      Code = "E_WORKTREE_CREATE_FAILED"
	CodeRunnerNotConfigured Code = "E_RUNNER_NOT_CONFIGURED"
	CodeRunnerStartFailed   Code = "E_RUNNER_START_FAILED"
	CodeConversationLost    Code = "E_CONVERSATION_LOST"
	CodeStartCutOff         Code = "E_START_CUT_OFF"
	CodeRunnerDisappeared   Code = "E_RUNNER_DISAPPEARED"
	CodeTimeLimit           Code = "E_TIME_LIMIT"
	CodeRunNotFound         Code = "E_RUN_NOT_FOUND"
	CodeRunAmbiguous        Code = "E_RUN_AMBIGUOUS"
	CodeAlertNotFound       Code = "E_ALERT_NOT_FOUND"
	CodeMessageNotFound     Code = "E_MESSAGE_NOT_FOUND"
	CodeTimerNotFound       Code = "E_TIMER_NOT_FOUND"
	CodeSessionNotFound     Code = "E_SESSION_NOT_FOUND"
	CodeAgentNotFound       Code = "E_AGENT_NOT_FOUND"
	CodePlanInvalid         Code = "E_PLAN_INVALID"
	CodePlanChanged         Code = "E_PLAN_CHANGED"
	CodeMergeConflict       Code = "E_MERGE_CONFLICT"
	CodeResultGone          Code = "E_RESULT_GONE"
	CodeTargetMoved         Code = "E_TARGET_MOVED"
	CodeTargetDirty         Code = "E_TARGET_DIRTY"
	CodeSourceMoved         Code = "E_SOURCE_MOVED"
	CodeNothingToLand       Code = "E_NOTHING_TO_LAND"
	CodeIntegrity           Code = "E_INTEGRITY"
	CodePushRejected        Code = "E_PUSH_REJECTED"
	CodeForgeNotFound       Code = "E_FORGE_NOT_FOUND"
	CodeForgeFailed         Code = "E_FORGE_FAILED"
	CodeForgeAuth           Code = "E_FORGE_AUTH"
	CodePRNotOpen           Code = "E_PR_NOT_OPEN"
	CodeLandingNotFound     Code = "E_LANDING_NOT_FOUND"
	CodeLandingOpen         Code = "E_LANDING_OPEN"
	CodeInvalidState        Code = "E_INVALID_STATE"
	CodeInputRefused        Code = "E_INPUT_REFUSED"
	CodeBranchExists        Code = "E_BRANCH_EXISTS"
	CodeNameExists          Code = "E_NAME_EXISTS"
	CodeRepoBusy            Code = "E_REPO_BUSY"
	CodeTrustRequired       Code = "E_TRUST_REQUIRED"
	CodeSetupFailed         Code = "E_SETUP_FAILED"
	CodeNoChecks            Code = "E_NO_CHECKS"
	CodeCheckFailed         Code = "E_CHECK_FAILED"
	CodeCheckTimeout        Code = "E_CHECK_TIMEOUT"
	CodeCheckNotFound       Code = "E_CHECK_NOT_FOUND"
	CodeApprovalRequired    Code = "E_APPROVAL_REQUIRED"
	CodeUncommitted         Code = "E_UNCOMMITTED"
	CodeLimit               Code = "E_LIMIT"
	CodeLimitReached        Code = "E_LIMIT_REACHED"
	CodeCleanupFailed       Code = "E_CLEANUP_FAILED"
	CodeDBLocked            Code = "E_DB_LOCKED"
	CodeDBError             Code = "E_DB_ERROR"
	CodeDBMissing           Code = "E_DB_MISSING"
	CodeDiskLow             Code = "E_DISK_LOW"
	CodePermissionDenied    Code = "E_PERMISSION_DENIED"
	CodeDaemonStartFailed   Code = "E_DAEMON_START_FAILED"
	CodeDaemonConnectFailed Code = "E_DAEMON_CONNECT_FAILED"
	CodeDaemonLost          Code = "E_DAEMON_LOST"
	CodeDaemonVersion       Code = "E_DAEMON_VERSION"
	CodeSocketPathInvalid   Code = "E_SOCKET_PATH_INVALID"
	CodeWaitTimeout         Code = "E_WAIT_TIMEOUT"
	CodeResources           Code = "E_RESOURCES"
	CodeInternal            Code = "E_INTERNAL"
)

// The exit statuses of every command.
const (
	ExitOK          = 0
	ExitError       = 1
	ExitUsage       = 2
	ExitNotFound    = 3
	ExitConflict    = 4
	ExitTimeout     = 5
	ExitUnknown     = 6 // whether it was done, or the answer, could not be determined
	ExitNeedsUser   = 8
	ExitInterrupted = 130 // after Ctrl-C, as in shells
	ExitBrokenPipe  = 141 // the reader of the output is gone, as in shells
)

// outcomes maps each code to its exit status and HTTP status.
var outcomes = map[Code]struct{ exit, http int }{
	CodeUsage:               {ExitUsage, http.StatusBadRequest},
	CodeNotGitRepo:          {ExitError, http.StatusBadRequest},
	CodeEmptyRepo:           {ExitError, http.StatusBadRequest},
	CodeBadRef:              {ExitError, http.StatusBadRequest},
	CodeInvalidPath:         {ExitError, http.StatusBadRequest},
	CodeInputNotFile:        {ExitError, http.StatusBadRequest},
	CodeSpecInvalid:         {ExitUsage, http.StatusBadRequest},
	CodeConfigInvalid:       {ExitError, http.StatusInternalServerError},
	CodeGitNotFound:         {ExitError, http.StatusInternalServerError},
	CodeGitFailed:           {ExitError, http.StatusInternalServerError},
	CodeSandboxUnavailable:  {ExitError, http.StatusInternalServerError},
	CodeTmuxNotFound:        {ExitError, http.StatusInternalServerError},
	CodeTmuxFailed:          {ExitError, http.StatusInternalServerError},
	CodeTmuxStartFailed:     {ExitError, http.StatusInternalServerError},
	CodeTmuxSessionNotFound: {ExitNotFound, http.StatusNotFound},
	CodeWorktreeFailed:      {ExitError, http.StatusInternalServerError},
	CodeRunnerNotConfigured: {ExitError, http.StatusBadRequest},
	CodeRunnerStartFailed:   {ExitError, http.StatusInternalServerError},
	CodeConversationLost:    {ExitConflict, http.StatusConflict},
	CodeStartCutOff:         {ExitError, http.StatusInternalServerError},
	CodeRunnerDisappeared:   {ExitError, http.StatusInternalServerError},
	CodeTimeLimit:           {ExitError, http.StatusInternalServerError},
	CodeRunNotFound:         {ExitNotFound, http.StatusNotFound},
	CodeLimitReached:        {ExitError, http.StatusInternalServerError},
	CodeLimit:               {ExitConflict, http.StatusTooManyRequests},
	CodeAlertNotFound:       {ExitNotFound, http.StatusNotFound},
	CodeMessageNotFound:     {ExitNotFound, http.StatusNotFound},
	CodeTimerNotFound:       {ExitNotFound, http.StatusNotFound},
	CodeSessionNotFound:     {ExitNotFound, http.StatusNotFound},
	CodeAgentNotFound:       {ExitNotFound, http.StatusNotFound},
	CodePlanInvalid:         {ExitUsage, http.StatusBadRequest},
	CodePlanChanged:         {ExitConflict, http.StatusConflict},
	CodeMergeConflict:       {ExitConflict, http.StatusConflict},
	CodeResultGone:          {ExitConflict, http.StatusConflict},
	CodeRunAmbiguous:        {ExitUsage, http.StatusConflict},
	CodeTargetMoved:         {ExitConflict, http.StatusConflict},
	CodeTargetDirty:         {ExitConflict, http.StatusConflict},
	CodeSourceMoved:         {ExitConflict, http.StatusConflict},
	CodeNothingToLand:       {ExitConflict, http.StatusConflict},
	CodeIntegrity:           {ExitError, http.StatusInternalServerError},
	CodePushRejected:        {ExitConflict, http.StatusConflict},
	CodeForgeNotFound:       {ExitError, http.StatusBadRequest},
	CodeForgeFailed:         {ExitError, http.StatusBadGateway},
	CodeForgeAuth:           {ExitNeedsUser, http.StatusForbidden},
	CodePRNotOpen:           {ExitConflict, http.StatusConflict},
	CodeLandingNotFound:     {ExitNotFound, http.StatusNotFound},
	CodeLandingOpen:         {ExitUnknown, http.StatusInternalServerError},
	CodeInvalidState:        {ExitConflict, http.StatusConflict},
	CodeInputRefused:        {ExitConflict, http.StatusConflict},
	CodeBranchExists:        {ExitError, http.StatusConflict},
	CodeNameExists:          {ExitError, http.StatusConflict},
	CodeRepoBusy:            {ExitConflict, http.StatusConflict},
	CodeTrustRequired:       {ExitNeedsUser, http.StatusForbidden},
	CodeSetupFailed:         {ExitError, http.StatusInternalServerError},
	CodeNoChecks:            {ExitError, http.StatusBadRequest},
	CodeCheckFailed:         {ExitConflict, http.StatusConflict},
	CodeCheckTimeout:        {ExitError, http.StatusConflict},
	CodeCheckNotFound:       {ExitNotFound, http.StatusNotFound},
	CodeApprovalRequired:    {ExitNeedsUser, http.StatusForbidden},
	CodeUncommitted:         {ExitConflict, http.StatusConflict},
	CodeCleanupFailed:       {ExitError, http.StatusInternalServerError},
	CodeDBLocked:            {ExitError, http.StatusInternalServerError},
	CodeDBError:             {ExitError, http.StatusInternalServerError},
	CodeDBMissing:           {ExitError, http.StatusInternalServerError},
	CodeDiskLow:             {ExitError, http.StatusInsufficientStorage},
	CodePermissionDenied:    {ExitError, http.StatusForbidden},
	CodeDaemonStartFailed:   {ExitUnknown, http.StatusInternalServerError},
	CodeDaemonConnectFailed: {ExitUnknown, http.StatusInternalServerError},
	CodeDaemonLost:          {ExitUnknown, http.StatusInternalServerError},
	CodeDaemonVersion:       {ExitConflict, http.StatusConflict},
	CodeSocketPathInvalid:   {ExitError, http.StatusInternalServerError},
	CodeResources:           {ExitError, http.StatusServiceUnavailable},
	CodeWaitTimeout:         {ExitTimeout, http.StatusRequestTimeout},
	CodeInternal:            {ExitError, http.StatusInternalServerError},
}

// Exit returns the exit status of a command that fails with the code.
func (c Code) Exit() int {
	if o, ok := outcomes[c]; ok {
		return o.exit
	}
	return ExitError
}

// HTTPStatus returns the status of a response that carries the code.
func (c Code) HTTPStatus() int {
	if o, ok := outcomes[c]; ok {
		return o.http
	}
	return http.StatusInternalServerError
}

// Known reports whether the code is one of agency's own.
func (c Code) Known() bool {
	_, ok := outcomes[c]
	return ok
}

// Error is the only error type that reaches users. Message names the value and the place. Hint is
// the way out, preferably a command that can be pasted. Details are facts for programs. Err, the
// cause, is for logs only.
type Error struct {
	Code    Code
	Message string
	Hint    string
	Details map[string]any
	Err     error
}

// Errorf makes an Error from a code and a formatted message. An operand of %w becomes the cause,
// and its hint is kept.
func Errorf(code Code, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	e := &Error{Code: code, Message: bounded(err.Error()), Err: errors.Unwrap(err)}
	if cause, ok := errors.AsType[*Error](err); ok {
		e.Hint = cause.Hint
	}
	return e
}

// WithHint adds a hint. It changes and returns its receiver.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = bounded(fmt.Sprintf(format, args...))
	return e
}

// WithDetail adds one fact for programs. It changes and returns its receiver.
func (e *Error) WithDetail(key string, value any) *Error {
	if e.Details == nil {
		e.Details = map[string]any{}
	}
	e.Details[key] = value
	return e
}

// Error returns the message, without the code and the hint.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause, or nil.
func (e *Error) Unwrap() error { return e.Err }

// AsError finds the Error in a chain. Any other error keeps its text and becomes E_RESOURCES when a
// resource of the system is exhausted, else E_INTERNAL; nil stays nil.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		if e.Message != err.Error() {
			// A wrapping error added words: keep them, and everything else from the inner error.
			return &Error{Code: e.Code, Message: err.Error(), Hint: e.Hint, Details: e.Details, Err: e}
		}
		return e
	}
	if Exhausted(err) {
		return Errorf(CodeResources, "%w", err).
			WithHint("free what is short: room on the disk, files, processes or memory; the limit of open files of the daemon is that of the shell that started it: ulimit -n, agency daemon stop")
	}
	return &Error{Code: CodeInternal, Message: bounded(err.Error()), Err: err}
}

// Exhausted reports whether an error means that the system or this process has run out of disk
// space, file descriptors, processes or memory.
func Exhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM) ||
		errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// Unproven reports whether an error means that the machine failed to read or write a file: it is
// exhausted, or its disk has an I/O error. Such an error proves nothing about the file.
func Unproven(err error) bool { return Exhausted(err) || errors.Is(err, syscall.EIO) }

// MessageLimit is the longest message of an Error, and the longest hint, in bytes. They repeat
// input of any length, and must fit into protocol lines, which are limited.
const MessageLimit = 4 << 10

// bounded cuts the middle out of a text that is too long: the subject is usually at its beginning,
// and the reason often at its end.
func bounded(text string) string {
	if len(text) <= MessageLimit {
		return text
	}
	const gap = " … "
	from, to := MessageLimit*3/4, len(text)-MessageLimit/4+len(gap)
	for from > 0 && !utf8.RuneStart(text[from]) {
		from--
	}
	for to < len(text) && !utf8.RuneStart(text[to]) {
		to++
	}
	return text[:from] + gap + text[to:]
}

// IsCode reports whether the chain holds an Error with the code.
func IsCode(err error, code Code) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code == code
}
