package scheduler

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"agency"
	"agency/internal/sessionfile"
)

// DefaultSource is the default kind of executor.
const DefaultSource = "orchestrate"

// Sources returns the kinds of executors that a session can have.
func Sources() []string { return []string{DefaultSource, "execute-phase", "run-prompt"} }

// CheckSource refuses an unknown kind of executor.
func CheckSource(source string) error {
	if slices.Contains(Sources(), source) {
		return nil
	}
	if len(source) > longestSource {
		source = source[:longestSource] + "…"
	}
	return agency.Errorf(agency.CodeUsage, "%q is not a source", source).WithHint("one of: %s", strings.Join(Sources(), ", "))
}

const longestSource = 40 // bytes that an error shows

// External is a session as its external executor describes it at the beginning: agents in the form
// of the status file, or a whole file.
type External struct {
	Repo       agency.Repo
	StatusDir  string // absolute, or relative to the root of the repository
	Source     string // empty is the value of the file, or else orchestrate; likewise SourceFile
	SourceFile string
	Name       string
	Owner      string
	Agents     []json.RawMessage
	File       json.RawMessage // instead of Agents
}

// CreateExternal records a session whose agents an external executor runs.
func (s *Scheduler) CreateExternal(ctx context.Context, o External) (*agency.Session, error) {
	said, err := o.file()
	if err != nil {
		return nil, err
	}
	if n := len(said.Agents); n == 0 || n > agency.MaxAgents {
		return nil, agency.Errorf(agency.CodeUsage, "the session has %d agents, not between 1 and %d", n, agency.MaxAgents).
			WithHint(`agency session create --agents '[{"id": "001"}, {"id": "002"}]'`)
	}
	now := s.Now().UTC().Truncate(time.Second)
	for {
		var random [4]byte
		s.Random(random[:])
		session := agency.Session{
			ID: agency.NewSessionID(now, random), Name: o.Name, External: true, Repo: o.Repo, Status: agency.SessionRunning, Owner: o.Owner,
		}
		session.SetStatusDir(o.StatusDir)
		agents, err := externalAgents(&session, said.Agents)
		if err != nil {
			return nil, err
		}
		if err := sessionfile.Import(&session, said.Head, agents, now); err != nil {
			return nil, err
		}
		session.Source, session.SourceFile = cmp.Or(o.Source, session.Source, DefaultSource), cmp.Or(o.SourceFile, session.SourceFile)
		if err := checkExternal(&session); err != nil {
			return nil, err
		}
		err = s.Store.CreateSession(ctx, &session, agents, nil)
		if agency.IsCode(err, agency.CodeNameExists) {
			continue // the id is taken: draw another
		}
		if err != nil {
			return nil, err
		}
		return &session, nil
	}
}

// file returns the description as a status file.
func (o *External) file() (*sessionfile.File, error) {
	switch {
	case o.File == nil || string(o.File) == "null":
	case len(o.Agents) > 0:
		return nil, agency.Errorf(agency.CodeUsage, "the request has agents and a whole status file").WithHint("put the agents into the file")
	default:
		return sessionfile.Parse(o.File)
	}
	f := &sessionfile.File{Agents: make([]sessionfile.Object, len(o.Agents))}
	for i, data := range o.Agents {
		var err error
		if f.Agents[i], err = sessionfile.ParseObject(data); err != nil {
			return nil, agency.Errorf(agency.CodeUsage, "agent number %d: %w", i+1, err).WithHint(`an agent is an object, such as {"id": "001", "name": "fix-auth"}`)
		}
	}
	return f, nil
}

func checkExternal(s *agency.Session) error {
	if err := CheckSource(s.Source); err != nil {
		return err
	}
	if err := checkLine("name", s.Name); err != nil {
		return err
	}
	return checkLine("source file", s.SourceFile)
}

// externalAgents reads the agents. Their logs are at the same place as in all sessions, whatever
// the description asks for.
func externalAgents(session *agency.Session, said []sessionfile.Object) ([]agency.SessionAgent, error) {
	agents, taken := make([]agency.SessionAgent, len(said)), map[string]string{}
	for i, members := range said {
		a, err := sessionfile.ParseAgent(members)
		if err != nil {
			return nil, err
		}
		// The names of files may not differ by case alone.
		if same, ok := taken[strings.ToLower(a.ID)]; ok {
			return nil, agency.Errorf(agency.CodeUsage, "the agents %q and %q have the same id", same, a.ID).WithHint("give each an id of its own")
		}
		taken[strings.ToLower(a.ID)] = a.ID
		a.Session, a.Position, a.LogFile = session.ID, i, session.LogFile(a.ID)
		a.Absent = slices.DeleteFunc(a.Absent, func(member string) bool { return !sessionfile.StaysAbsent(member) })
		agents[i] = a
	}
	return agents, nil
}

// Update is a report of an external executor about one agent, or about its session when Agent is
// empty. Action is start, complete, fail or cancel.
type Update struct {
	Agent    string
	Action   string
	PID      *int
	ExitCode *int // nil is 0 for complete and 1 for fail
	Error    string
}

// Update applies reports to a session, in order, and returns one error for each. A report with a
// nil error is durable.
func (s *Scheduler) Update(ctx context.Context, id agency.SessionID, reports []Update) []error {
	errs := make([]error, len(reports))
	for from := 0; from < len(reports); {
		if reports[from].Agent == "" {
			errs[from] = s.updateSession(ctx, id, &reports[from])
			from++
			continue
		}
		to := from
		var batch []agency.AgentReport
		for ; to < len(reports) && reports[to].Agent != ""; to++ {
			batch = append(batch, agency.AgentReport{Session: id, Agent: reports[to].Agent, Apply: reports[to].apply})
		}
		copy(errs[from:], s.Store.UpdateAgents(ctx, batch))
		from = to
	}
	return errs
}

// apply applies the report to its agent.
func (r *Update) apply(s *agency.Session, a *agency.SessionAgent, now time.Time) error {
	if err := reportable(s); err != nil {
		return err
	}
	exit := func(usual int) int {
		if r.ExitCode != nil {
			return *r.ExitCode
		}
		return usual
	}
	switch r.Action {
	case "start":
		return start(a, r.PID, now)
	case "complete":
		return complete(a, exit(0), now)
	case "fail":
		return fail(a, r.Error, exit(1), now)
	case "cancel":
		return cancel(a, r.Error, now)
	default:
		return agency.Errorf(agency.CodeUsage, "%q is not an action", r.Action).WithHint("one of: start, complete, fail, cancel")
	}
}

// updateSession applies a report on the session itself. A report that it is complete changes
// nothing when it has settled with its last agent.
func (s *Scheduler) updateSession(ctx context.Context, id agency.SessionID, r *Update) error {
	switch r.Action {
	case "complete":
		return s.completeExternal(ctx, id)
	case "cancel":
		return s.cancelExternal(ctx, id, r.Error)
	default:
		return agency.Errorf(agency.CodeUsage, "the action %q is for an agent, and none is named", r.Action).
			WithHint("agency session update %s --agent 001 %s; a session itself takes complete and cancel", id, r.Action)
	}
}

func (s *Scheduler) completeExternal(ctx context.Context, id agency.SessionID) error {
	session, err := s.Store.Session(ctx, id)
	if err != nil {
		return err
	}
	if err := reportable(session); err != nil {
		return err
	}
	switch session.Status {
	case agency.SessionCancelled:
		return agency.Errorf(agency.CodeInvalidState, "session %s is cancelled and cannot become complete", id).WithHint("agency session show %s", id)
	case agency.SessionRunning:
		return agency.Errorf(agency.CodeInvalidState, "session %s is not complete: %d of its agents are running and %d queued", id,
			session.Counts.Running, session.Counts.Queued).
			WithHint("report on them first, or give them up: agency session update %s cancel", id)
	case agency.SessionComplete, agency.SessionFailed:
	}
	return nil
}

func (s *Scheduler) cancelExternal(ctx context.Context, id agency.SessionID, why string) error {
	_, err := s.Store.ChangeSession(ctx, id, nil, func(session *agency.Session, agents []*agency.SessionAgent) ([]agency.EventDraft, error) {
		if err := reportable(session); err != nil {
			return nil, err
		}
		if session.Status == agency.SessionCancelled {
			return nil, nil
		}
		if session.Status.Final() {
			return nil, agency.Errorf(agency.CodeInvalidState, "session %s is %s and cannot be cancelled", id, session.Status).WithHint("agency session show %s", id)
		}
		now := s.Now().UTC().Truncate(time.Second)
		var drafts []agency.EventDraft
		for _, a := range agents {
			if a.Status.Final() {
				continue
			}
			before := a.Status
			if err := cancel(a, why, now); err != nil {
				return nil, err
			}
			session.Counts.Add(before, -1)
			session.Counts.Add(a.Status, 1)
			drafts = append(drafts, a.EventDraft())
		}
		session.CancelAt = &now
		session.Settle(now)
		return append(drafts, session.EventDraft(agency.SessionSettled)), nil
	})
	return err
}

// reportable refuses reports on agents that agency runs itself.
func reportable(s *agency.Session) error {
	if s.External {
		return nil
	}
	return agency.Errorf(agency.CodeInvalidState, "agency itself runs the agents of session %s, and takes no reports on them", s.ID).
		WithHint("agency session cancel %s, pause, resume or retry steer it", s.ID)
}
