// Package supervisor creates, watches, stops, removes and reconciles runs. It records the intent of
// each operation before it acts, so that Start can finish or undo what a crash cut off. It reaches
// everything outside, such as git, tmux, the store and the wrappers, through the small interfaces
// declared here.
package supervisor

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"agency"
	"agency/internal/supervisor/observe"
	"agency/internal/supervisor/standby"
)

// Store is the durable record. Each writing method is one transaction together with its events.
type Store interface {
	CreateRun(ctx context.Context, r *agency.Run, c agency.Creation, drafts ...agency.EventDraft) error
	// ChangeRun also marks the steps as done whose events change returns.
	ChangeRun(ctx context.Context, id agency.RunID, change func(r *agency.Run) ([]agency.EventDraft, error)) (*agency.Run, error)
	// RecordFact is ChangeRun for what is true of an attempt whether or not it can be written: if
	// the disk takes nothing, the change is kept in memory and the returned run is Unrecorded.
	RecordFact(ctx context.Context, id agency.RunID, change func(r *agency.Run) ([]agency.EventDraft, error)) (*agency.Run, error)
	// WriteFacts writes what is kept in memory, as far as the disk takes it.
	WriteFacts(ctx context.Context) error
	FinishSteps(ctx context.Context, id agency.RunID, attempt int, names ...string) error
	Steps(ctx context.Context, id agency.RunID, attempt int) ([]agency.Step, error)
	SetToken(ctx context.Context, id agency.RunID, attempt int, tokenHash string) error
	TokenHash(ctx context.Context, id agency.RunID, attempt int) (string, error)
	Run(ctx context.Context, id agency.RunID) (*agency.Run, error)
	Spec(ctx context.Context, id agency.RunID) ([]byte, error)
	Runs(ctx context.Context, f agency.Filter) ([]agency.Run, error)
	// List is Runs for long lists: the runs are shared, and only to be read.
	List(ctx context.Context, f agency.Filter) ([]*agency.Run, error)
	MatchRuns(ctx context.Context, ref string, limit int) ([]agency.Run, error)
	// AgentAddresses returns how agents of sessions are named, those of the newest session first.
	AgentAddresses(ctx context.Context, limit int) ([]agency.AgentAddress, error)
	Attempts(ctx context.Context, id agency.RunID) ([]agency.Attempt, error)
	PutRepo(ctx context.Context, repo agency.Repo) error
	Repo(ctx context.Context, fingerprint string) (*agency.Repo, error)
	Trusts(ctx context.Context, fingerprint, hash string) (trusted, any bool, err error)
	GrantTrust(ctx context.Context, repo agency.Repo, hash string) error
	RevokeTrust(ctx context.Context, repo agency.Repo) (revoked int, err error)
	SendMessage(ctx context.Context, m *agency.Message, recipients []string, dead string) error
	Messages(ctx context.Context, f agency.MessageFilter) ([]agency.Message, error)
	// Landings returns the landings of a run, the oldest first.
	Landings(ctx context.Context, run agency.RunID) ([]agency.Landing, error)
	DeliverMessages(ctx context.Context, recipient string, seqs []int64) error
	Append(ctx context.Context, drafts ...agency.EventDraft) error
	Changed() <-chan struct{}
	// Events returns the events after a sequence number, those of one run if it is given.
	Events(ctx context.Context, since int64, run agency.RunID, limit int) ([]agency.Event, error)
	LastSeq(ctx context.Context) (int64, error)
}

// Git is what the supervisor needs from git.
type Git interface {
	Discover(ctx context.Context, dir string) (agency.Repo, error)
	// Recall is Discover that asks git only when something changed since it last did.
	Recall(ctx context.Context, dir string) (agency.Repo, error)
	// ID returns the identity of the repository with a git common directory, read without git;
	// empty when it has none.
	ID(commonDir string) (string, error)
	EnsureID(repo agency.Repo, newID func() string) (string, error)
	ReplaceID(repo agency.Repo, id string) error
	ResolveCommit(ctx context.Context, dir, ref string) (string, error)
	BranchAt(ctx context.Context, dir string) (string, error)
	// OwnBranch returns the name of a branch that agency makes, which differs from branch where a
	// branch called agency is in the way.
	OwnBranch(repo agency.Repo, branch string) string
	CheckBranch(ctx context.Context, repo agency.Repo, branch string) error
	// AddWorktree creates a branch and a worktree of it, in a folder that is empty or not there.
	AddWorktree(ctx context.Context, repo agency.Repo, path, branch, commit string, programs agency.CheckoutPrograms) error
	Worktree(ctx context.Context, repo agency.Repo, path string) (at string, err error)
	// Leftover reports whether files of a worktree, or git's entry for it, are left.
	Leftover(repo agency.Repo, path string) (bool, error)
	Made(ctx context.Context, repo agency.Repo, worktree string) (bool, error)
	HasBranch(ctx context.Context, repo agency.Repo, branch string) (bool, error)
	DeleteBranch(ctx context.Context, repo agency.Repo, branch string) error
	// MadeBranch reports whether AddWorktree made a branch for a worktree.
	MadeBranch(ctx context.Context, repo agency.Repo, worktree, branch string) (bool, error)
	// UndoBranch deletes the branch that AddWorktree made for a worktree, unless it was used since.
	// left reports whether it stays.
	UndoBranch(ctx context.Context, repo agency.Repo, worktree, branch, commit string) (left bool, err error)
	Exclude(repo agency.Repo, pattern string) error
	// Record saves the parts of the repository's git configuration that matter for a run, and
	// returns the repository with the name of the saved copy.
	Record(ctx context.Context, repo agency.Repo) (agency.Repo, error)
	Ignored(ctx context.Context, repo agency.Repo, worktree string, paths []string) ([]string, error)
	File(ctx context.Context, repo agency.Repo, commit, path string, limit int) (data []byte, found bool, err error)
	// Executable reports whether a commit has a file, and whether that file is executable.
	Executable(ctx context.Context, repo agency.Repo, commit, path string) (found, runs bool, err error)
	// Folder returns the tree of a folder of a commit; empty when there is none. Archive packs it.
	Folder(ctx context.Context, repo agency.Repo, commit, path string) (tree string, err error)
	Archive(ctx context.Context, repo agency.Repo, tree string, limit int) ([]byte, error)
	Inspect(ctx context.Context, repo agency.Repo, worktree, baseCommit string) (agency.GitFacts, error)
	// Contained returns the tip of a branch without commits of its own; empty for any other.
	Contained(ctx context.Context, repo agency.Repo, branch, from, base string) (tip string, err error)
	Unmerged(ctx context.Context, repo agency.Repo, branch string, known ...string) (bool, error)
	// Snapshot saves a worktree, and proves that the repository has all of it since the commit
	// base.
	Snapshot(ctx context.Context, repo agency.Repo, worktree, base, ref, message string) (agency.Saved, error)
	// Prove checks that the repository itself has commits under their refs, by name, with
	// everything that base does not have.
	Prove(ctx context.Context, repo agency.Repo, worktree, base string, commits map[string]string) error
	// Holds reports whether a commit has all that is in the files and in the index of a worktree.
	Holds(ctx context.Context, repo agency.Repo, worktree, commit string) (bool, error)
	Snapshots(ctx context.Context, repo agency.Repo, id agency.RunID) ([]agency.Snapshot, error)
	Changes(ctx context.Context, repo agency.Repo, from, to string) ([]agency.FileChange, error)
	// Diff compares the commit from with the commit to or, when to is empty, with everything in a
	// worktree except ignored files. The patch is cut off after limit bytes.
	Diff(ctx context.Context, repo agency.Repo, worktree, to string, part agency.DiffPart) (agency.Diff, error)
	// DiffStat counts what Diff would show, and the commits.
	DiffStat(ctx context.Context, repo agency.Repo, worktree, from, to string) (agency.DiffStat, error)
	KeepTree(ctx context.Context, repo agency.Repo, worktree, objects string) (string, error)
	CreateBranch(ctx context.Context, repo agency.Repo, branch, commit string) error
	DeleteBranchIn(ctx context.Context, repo agency.Repo, branch, commit string) error
	Repair(ctx context.Context, repo agency.Repo, worktrees []string) error
	standby.Git
	// Private returns the repository of an agent in a sandbox, in the folder dir, and the function
	// that makes or renews it once the worktree is there. Import brings its commits into the real
	// repository: those that are not on the run's branch under refs below keep.
	Private(ctx context.Context, repo agency.Repo, worktree, branch, dir string) (agency.PrivateGit, func() error, error)
	// Shared returns the parts of the real repository that an agent at the level landlock gets, and
	// Unlink removes the links that the agent can plant there.
	Shared(ctx context.Context, repo agency.Repo, worktree, branch, dir string) (agency.PrivateGit, error)
	Unlink(ctx context.Context, repo agency.Repo, worktree, branch string) error
	Import(ctx context.Context, repo agency.Repo, worktree, branch, keep, dir string) error
	// TakeStandby creates a branch at the commit of a standby and puts its worktree on it.
	TakeStandby(ctx context.Context, repo agency.Repo, path, branch string) error
	// FreeClaims removes the locks of git processes that were killed while they wrote one of
	// agency's refs.
	FreeClaims(ctx context.Context) error
}

// Tmux is what the supervisor needs from tmux.
type Tmux interface {
	observe.Tmux
	Version(ctx context.Context) (string, error)
	// StartSession starts a program in a session of the run's own, in its worktree.
	StartSession(ctx context.Context, r *agency.Run, argv []string) error
	// ReplaceWrapper starts a program in the place of one that ended in a pane of a run's session, or
	// in a new session.
	ReplaceWrapper(ctx context.Context, r *agency.Run, argv []string) error
	Exists(ctx context.Context, name string) (bool, error)
	// Runs reports whether a program runs in a session; a session outlives its program.
	Runs(ctx context.Context, name string) (bool, error)
	Kill(ctx context.Context, name string) error
	Sessions(ctx context.Context) ([]string, error)
	Socket() string
}

// Harness knows the command lines of the agents.
type Harness interface {
	observe.Harness
	FindExec(r agency.Runner, exec, dir string, env []string) (string, error)
	Build(r agency.CommandRequest) (agency.Command, error)
	// Joins returns why the terminal of such an agent cannot join its conversation.
	Joins(kind agency.RunnerKind) error
	// State returns where an agent with this environment keeps its state for a worktree.
	State(kind agency.RunnerKind, env agency.Environ, worktree string) agency.SandboxState
	// ShowsReady reports whether Screen can recognize when the terminal of such an agent takes a
	// message.
	ShowsReady(r agency.Runner) bool
	// Sight reads what an agent's terminal shows, before something is typed.
	Sight(r agency.Runner, lines []string) agency.Sight
	// Answer returns the keys to press next, on a terminal that shows these lines, to reply to a
	// request. shown is false when the terminal does not show that request; the error is
	// E_INPUT_REFUSED when the reply cannot be given there.
	Answer(kind agency.RunnerKind, lines []string, r *agency.Request, reply agency.Reply) (keys string, shown bool, err error)
}

// Attempts reads and ends what wrappers leave on this host.
type Attempts interface {
	observe.Attempts
	ReadStart(dir string) (*agency.Start, error)
	ReadExit(dir string) (*agency.Exit, error)
	// Locked reports whether a live wrapper holds the attempt's lock.
	Locked(dir string) (bool, error)
	// Alive reports whether a process still runs.
	Alive(p agency.Process) (bool, error)
	// Held returns the exit record of a runner that outlived its wrapper; nil without an error when
	// there is none.
	Held(dir string, start *agency.Start, kind agency.RunnerKind) (*agency.Exit, error)
	// Alone reports whether nothing lives below a wrapper that it would have to end.
	Alone(wrapper agency.Process) bool
	Signal(p agency.Process, sig syscall.Signal) error
	// EndTree ends what a killed wrapper left, the runner and all processes that carry the mark,
	// and returns how many are left.
	EndTree(ctx context.Context, wrapper, root agency.Process, mark []string, grace time.Duration) (int, error)
	// Unlimit removes what enforced the limits of an attempt that has no process any more. It can be
	// repeated.
	Unlimit(dir string, id agency.RunID, attempt int) error
}

// Look looks at a terminal before something is typed into it. It returns whether the text to
// be typed is there already, unsent, or why nothing may be typed.
type Look = func(ctx context.Context, next agency.Typing) (unsent bool, err error)

// Link is the connection to one live wrapper.
type Link interface {
	// Input types a text and Enter. It calls look right before each of them, and does not type
	// after an error of look. Where look reports that the text is there already, it only presses Enter.
	Input(ctx context.Context, text string, look Look) (agency.Delivery, error)
	// Keys types keys unchanged, after a look.
	Keys(ctx context.Context, keys string, look Look) error
	// Say sends something to the runner in the runner's own protocol, once for each id, and returns
	// how far that got.
	Say(ctx context.Context, s agency.Saying) (agency.Delivery, error)
	// Door makes the wrapper open a door for the agent's own terminal.
	Door(ctx context.Context) (agency.Door, error)
	// Stop makes the wrapper end its runner, which gets its grace. It can be repeated.
	Stop(ctx context.Context, by agency.EndedBy) error
	// Force is Stop without the rest of the grace of a runner that is being stopped.
	Force(ctx context.Context) error
	// Environ returns the environment that the runner was given.
	Environ(ctx context.Context) ([]string, error)
	// Allow lets the runner reach more hosts. It can be repeated.
	Allow(ctx context.Context, entries []string) error
	// Go lets a wrapper that waits for it start its runner. It can be repeated.
	Go(ctx context.Context) error
	Close() error
}

// Watcher reports that something in a directory may have changed. It can miss a change, so the
// supervisor also rescans.
type Watcher interface {
	observe.Watcher
	Changes() <-chan string // paths of files
}

// Scaffold writes agency's files into a new worktree.
type Scaffold func(worktree string, prompt []byte, at time.Time) error

// Contract writes the first status file of an attempt into a worktree.
type Contract func(worktree string, at time.Time) error

// ReportUnfilled reports whether an agent's report is still the empty form.
type ReportUnfilled func(report []byte) bool

// ParseProject parses an agency.toml, which error messages name by path; empty data gives the
// defaults.
type ParseProject func(path string, data []byte) (agency.Project, error)

// Deps are the parts that a supervisor works with.
type Deps struct {
	Store          Store
	Git            Git
	Tmux           Tmux
	Harness        Harness
	Sandbox        Sandbox
	Attempts       Attempts
	Watcher        Watcher
	Spool          observe.Spool
	Scaffold       Scaffold
	Contract       Contract
	ReportUnfilled ReportUnfilled
	ParseProject   ParseProject
	// ParseDevcontainer is needed for runs in containers.
	ParseDevcontainer ParseDevcontainer
	RunSetup          RunSetup
	// NeededBy returns the session that needs a run, which must then not be removed; empty is none.
	NeededBy func(ctx context.Context, id agency.RunID) (agency.SessionID, error)
	Room     func() error // returns why the disk has no room for another run
	// Standbys returns how many standby worktrees a repository has at most, and Spare why the
	// machine has nothing to spare for them now.
	Standbys func() int
	Spare    func() error
	Boot     string // identifies the time since the machine started
	Log      *slog.Logger
	Now      func() time.Time                    // never runs backwards
	Elapsed  func(since time.Time) time.Duration // how much of the time since then really passed
	Convert  func(at time.Time) time.Time        // makes a time of the system's clock one of Now, and not a later one
	Random   Random
}

// Settings are the parts of the configuration that a supervisor uses.
type Settings struct {
	Home           string        // data root
	Socket         string        // where wrappers find the daemon
	Lock           string        // the file on which the daemon holds a kernel lock
	Wrapper        []string      // argv that begins a wrapper; the launch file is appended
	Hook           []string      // argv that begins a hook; the kind of the runner is appended
	StallThreshold time.Duration // at the start; SetIntervals changes it
	Rescan         time.Duration // between rescans for changes without an event; also changed by SetIntervals
}

// Supervisor owns all runs of one data root. Only one may exist per root at a time, which the
// daemon's lock ensures.
type Supervisor struct {
	Deps
	Settings

	life           *life
	rescanInterval *rescanInterval

	// Each part knows the parts above it here, and not the supervisor.
	Records    *Records
	Live       *Live
	Repos      *Repos
	Projects   *Projects
	images     *images
	Work       *Work
	Inbox      *Inbox
	Callers    *Callers
	Terminals  *observe.Terminals
	Observer   *observe.Observer
	views      *views
	Marks      *Marks
	Standbys   *standby.Pool
	Input      *Input
	containers *containers
	settler    *settler
	Wrappers   *Wrappers
	launcher   *launcher
	planner    *planner
	remover    *remover
	monitor    *monitor
	Query      *Query
	Counter    *Counter // a service of its own
}

// New returns a supervisor. It does nothing until Start.
func New(deps Deps, settings Settings) *Supervisor {
	s := &Supervisor{Deps: deps, Settings: settings, life: &life{}, rescanInterval: newRescanInterval(settings.Rescan)}
	s.Records = &Records{Store: deps.Store, log: deps.Log}
	s.Live = &Live{store: s.Records, runs: map[agency.RunID]*live{}}
	s.Repos = &Repos{store: s.Records, git: deps.Git, random: deps.Random, home: settings.Home}
	s.Projects = &Projects{store: s.Records, repos: s.Repos, git: deps.Git, harness: deps.Harness, parse: deps.ParseProject, parseDevcontainer: deps.ParseDevcontainer}
	s.images = &images{projects: s.Projects, git: deps.Git, sandbox: deps.Sandbox}
	s.Work = &Work{store: s.Records, repos: s.Repos, git: deps.Git}
	s.Inbox = &Inbox{store: s.Records, git: deps.Git, now: deps.Now, random: deps.Random}
	s.Callers = &Callers{store: s.Records}
	s.Terminals = observe.NewTerminals(deps.Tmux, deps.Attempts)
	s.Observer = observe.New(observe.Deps{
		Store: s.Records, Inbox: s.Inbox, Harness: deps.Harness, Tmux: deps.Tmux, Attempts: deps.Attempts, Watcher: deps.Watcher,
		Spool: deps.Spool, ReportUnfilled: deps.ReportUnfilled, Log: deps.Log, Now: deps.Now, Elapsed: deps.Elapsed, Convert: deps.Convert,
	})
	s.views = &views{
		store: s.Records, live: s.Live, observer: s.Observer, projects: s.Projects, home: settings.Home, log: deps.Log,
		unwritten: map[agency.RunID]bool{},
	}
	s.Marks = &Marks{store: s.Records, views: s.views, now: deps.Now}
	s.Input = &Input{store: s.Records, live: s.Live, observer: s.Observer, harness: deps.Harness, tmux: deps.Tmux, random: deps.Random, log: deps.Log, now: deps.Now}
	s.containers = &containers{sandbox: deps.Sandbox, log: deps.Log, life: s.life}
	s.settler = &settler{
		store: s.Records, live: s.Live, observer: s.Observer, repos: s.Repos, work: s.Work, views: s.views, git: deps.Git, tmux: deps.Tmux,
		attempts: deps.Attempts, wrapper: settings.Wrapper, log: deps.Log, now: deps.Now, life: s.life,
		sessions:   &sessionEnder{store: s.Records, live: s.Live, tmux: deps.Tmux, log: deps.Log, life: s.life},
		containers: s.containers,
	}
	s.Wrappers = &Wrappers{
		store: s.Records, live: s.Live, observer: s.Observer, settler: s.settler, attempts: deps.Attempts, log: deps.Log, life: s.life,
	}
	s.remover = &remover{
		store: s.Records, repos: s.Repos, work: s.Work, settler: s.settler, containers: s.containers, views: s.views, git: deps.Git, tmux: deps.Tmux,
		attempts: deps.Attempts, log: deps.Log, now: deps.Now,
	}
	s.Standbys = standby.New(standby.Deps{
		Home: settings.Home, Git: deps.Git, Boot: deps.Boot, Lock: s.Repos.Lock, Count: deps.Standbys, Spare: deps.Spare, Log: deps.Log, Now: deps.Now,
		NewID: func() string { return string(agency.NewRunID(deps.Now(), [10]byte(deps.Random.bytes(10)))) },
		Taken: func(ctx context.Context, worktree string) (bool, error) {
			runs, err := deps.Store.Runs(ctx, agency.Filter{Worktree: worktree, Removed: true})
			return len(runs) > 0, err
		},
		End: func(ctx context.Context, mark string) error {
			_, err := deps.Attempts.EndTree(ctx, agency.Process{}, agency.Process{}, []string{mark}, 2*time.Second)
			return err
		},
	})
	s.launcher = &launcher{
		Settings: settings, store: s.Records, live: s.Live, repos: s.Repos, projects: s.Projects, views: s.views, settler: s.settler,
		standbys: s.Standbys, git: deps.Git, tmux: deps.Tmux, harness: deps.Harness, sandbox: deps.Sandbox, attempts: deps.Attempts, scaffold: deps.Scaffold, contract: deps.Contract,
		runSetup: deps.RunSetup, log: deps.Log, life: s.life,
	}
	s.planner = &planner{
		store: s.Records, repos: s.Repos, projects: s.Projects, images: s.images, standbys: s.Standbys, launcher: s.launcher, git: deps.Git,
		harness: deps.Harness, sandbox: deps.Sandbox, random: deps.Random, room: deps.Room, home: settings.Home, hook: settings.Hook, now: deps.Now,
	}
	s.monitor = &monitor{
		store: s.Records, live: s.Live, observer: s.Observer, views: s.views, settler: s.settler, sessions: s.settler.sessions, containers: s.containers,
		tmux: deps.Tmux, watcher: deps.Watcher, interval: s.rescanInterval, log: deps.Log, life: s.life,
	}
	s.Query = &Query{
		store: s.Records, live: s.Live, repos: s.Repos, work: s.Work, observer: s.Observer, terminals: s.Terminals, launcher: s.launcher,
		git: deps.Git, tmux: deps.Tmux, attempts: deps.Attempts, log: deps.Log, rescanInterval: s.rescanInterval,
	}
	s.Counter = &Counter{store: s.Records, work: s.Work, observer: s.Observer, room: deps.Room, log: deps.Log}
	s.Observer.SetStall(settings.StallThreshold)
	return s
}

// SetIntervals changes the stall threshold and the time between two rescans, from now on.
func (s *Supervisor) SetIntervals(stall, rescan time.Duration) {
	s.Observer.SetStall(stall)
	s.rescanInterval.set(rescan)
}

// Start reconciles the record with what is true and then watches runs until Stop. When it returns,
// every attempt that was not final is settled or has a live wrapper.
func (s *Supervisor) Start(ctx context.Context) error {
	for _, dir := range []string{"runs", "worktrees", "locks"} {
		if err := os.MkdirAll(filepath.Join(s.Home, dir), 0o700); err != nil {
			return fmt.Errorf("create %s: %w", dir, err)
		}
	}
	return s.life.Start(ctx, func(background context.Context) error {
		s.life.ctx = background
		s.Observer.Start(background)
		if err := s.Git.FreeClaims(ctx); err != nil {
			s.Log.Warn("free what killed gits locked", "err", err) // the next git that writes there tries again
		}
		removing, err := s.monitor.reconcile(ctx)
		if err != nil {
			return err
		}
		for _, r := range removing {
			s.life.Go(func() { s.finishRemoval(r) })
		}
		s.monitor.lookAtWrappers()
		s.life.Go(s.monitor.watch)
		s.life.Go(s.monitor.checkRecords)
		s.Standbys.Load(ctx)
		s.life.Go(func() { s.Standbys.Run(background) })
		s.life.Go(func() {
			<-background.Done()
			s.Live.close()
		})
		return nil
	})
}

// Stop ends the watching and closes the links, and waits for both; wrappers and their runners
// continue. It is idempotent.
func (s *Supervisor) Stop() {
	s.life.Stop()
	s.Observer.Stop()
}
