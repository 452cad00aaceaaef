package agency

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"
)

// SandboxLevel is how far the agent of a run is kept apart from the machine. A later level keeps it
// further apart than an earlier one.
type SandboxLevel string

// The levels, the weakest first.
const (
	// SandboxWorktree gives the agent a worktree of its own and nothing more: it has all rights of
	// the user.
	SandboxWorktree SandboxLevel = "worktree"
	// SandboxLandlock keeps the agent from the user's files and processes by Landlock alone, where
	// nothing better works: it shares the repository and the machine's file system.
	SandboxLandlock SandboxLevel = "landlock"
	// SandboxProcess gives the agent a file system, processes and a repository of its own. On macOS it
	// shares those of the machine, within the rules of Seatbelt.
	SandboxProcess SandboxLevel = "process"
	// SandboxContainer gives it the same in a container: the system of an image in the place of the
	// machine's.
	SandboxContainer SandboxLevel = "container"
)

// SandboxLevels returns all levels, the weakest first.
func SandboxLevels() []SandboxLevel {
	return []SandboxLevel{SandboxWorktree, SandboxLandlock, SandboxProcess, SandboxContainer}
}

// Confines reports whether a level keeps the agent from the user's files and processes.
func (l SandboxLevel) Confines() bool { return l != "" && l != SandboxWorktree }

// Shares reports whether an agent at a level is in the machine's own file system and repository, where
// rules of the kernel refuse what it must not reach.
func (l SandboxLevel) Shares() bool {
	return l == SandboxLandlock || l == SandboxProcess && runtime.GOOS == "darwin"
}

// CheckoutPrograms are the programs that git may run while it makes a worktree.
type CheckoutPrograms int

// The programs. Each includes the ones before it.
const (
	NoPrograms  CheckoutPrograms = iota // neither hooks nor filters: files come as they are stored
	OwnPrograms                         // filters, and hooks in .git/hooks or a folder with an absolute path
	AllPrograms                         // hooks that come with the files, too
)

// Network is what an agent in a sandbox reaches.
type Network string

// The networks, the widest first.
const (
	NetworkFull  Network = "full"  // what the user reaches
	NetworkAllow Network = "allow" // the hosts on a list, through agency's proxy
	NetworkNone  Network = "none"  // nothing, not even other programs of the machine
)

// SandboxVariable is set in the environment of an agent in a sandbox, to its level.
const SandboxVariable = "AGENCY_SANDBOX"

// Networks returns all networks, the widest first.
func Networks() []Network { return []Network{NetworkFull, NetworkAllow, NetworkNone} }

// Sandbox is the sandbox of a run. Empty fields leave the choice open; the record has none.
type Sandbox struct {
	Level   SandboxLevel `json:"level"`
	Network Network      `json:"network"`
}

// Check returns E_SPEC_INVALID for a sandbox that does not exist, or that cannot be kept: without a
// network of its own, a run at the level worktree has that of the user.
func (s Sandbox) Check() error {
	switch {
	case s.Level != "" && !slices.Contains(SandboxLevels(), s.Level):
		return Errorf(CodeSpecInvalid, "there is no sandbox level %q", string(s.Level)).WithHint("the levels are %s", words(SandboxLevels()))
	case s.Network != "" && !slices.Contains(Networks(), s.Network):
		return Errorf(CodeSpecInvalid, "there is no network %q", string(s.Network)).WithHint("the networks are %s", words(Networks()))
	case s.Level == SandboxWorktree && s.Network != "" && s.Network != NetworkFull:
		return Errorf(CodeSpecInvalid, "the network %s needs the sandbox level process: at worktree an agent has the user's network", s.Network).
			WithHint("--sandbox process --network %s", s.Network)
	case s.Level == SandboxLandlock && s.Network == NetworkAllow:
		return Errorf(CodeSpecInvalid, "the network allow needs the sandbox level process: Landlock keeps no agent to a proxy").
			WithHint("--sandbox process --network allow, or --sandbox landlock --network none")
	case s.Level.Shares() && s.Network == NetworkAllow:
		return Errorf(CodeSpecInvalid, "the network allow needs Linux: on macOS nothing keeps an agent to a proxy").
			WithHint("--network none, or --network full")
	}
	return nil
}

// Stricter returns the stricter of two sandboxes, for the level and the network alike. An empty
// field is the least strict.
func (s Sandbox) Stricter(than Sandbox) Sandbox {
	if slices.Index(SandboxLevels(), s.Level) < slices.Index(SandboxLevels(), than.Level) {
		s.Level = than.Level
	}
	if slices.Index(Networks(), s.Network) < slices.Index(Networks(), than.Network) {
		s.Network = than.Network
	}
	return s
}

// Or returns the sandbox with its empty fields taken from another one.
func (s Sandbox) Or(other Sandbox) Sandbox {
	if s.Level == "" {
		s.Level = other.Level
	}
	if s.Network == "" {
		s.Network = other.Network
	}
	return s
}

// String returns the sandbox as users see it, such as "process, network none".
func (s Sandbox) String() string {
	if s.Level == SandboxWorktree {
		return string(s.Level)
	}
	return fmt.Sprintf("%s, network %s", s.Level, s.Network)
}

// Enforces returns, in words, what the sandbox keeps an agent from; docs/sandbox.md has the limits.
// The list of the level worktree is empty. It is never nil.
func (s Sandbox) Enforces() []string {
	if !s.Level.Confines() {
		return []string{}
	}
	if s.Level.Shares() {
		return s.enforcesByRules()
	}
	system := "the system"
	if s.Level == SandboxContainer {
		system = "the system of its image"
	}
	list := []string{
		"files: it writes in its worktree, its own folder of the agent's state and [sandbox] write, and reads " + system + " and [sandbox] read",
		"repository: its own branch alone changes; other branches, hooks and configuration stay",
		"processes: it sees and signals its own alone, and they end with the run",
		"environment: it has the variables of the agent and [sandbox] env",
		"agency: it asks about itself and what it started alone, through its wrapper",
	}
	switch s.Network {
	case NetworkNone:
		list = append(list, "network: none")
	case NetworkAllow:
		list = append(list, "network: the hosts on its list alone, by name, through agency's proxy")
	case NetworkFull:
	}
	return list
}

// enforcesByRules is Enforces for a level that shares, by the rules of Landlock or of Seatbelt.
func (s Sandbox) enforcesByRules() []string {
	by := "weaker than process: the rules of Landlock alone, in the file system and the processes of the machine"
	still := "names, sizes and times, and change modes and times"
	processes := "it sees all, and signals its own alone"
	sockets := "it connects to no other program on this machine by a file"
	if s.Level != SandboxLandlock {
		by = "the rules of Seatbelt, in the file system and the processes of the machine; agency's are not tested on macOS"
		still = "sizes and times of files whose names it knows"
		processes = "it signals its own alone"
		sockets += " outside its own folders"
	}
	list := []string{
		by,
		"files: it writes in its worktree, a home of its own and [sandbox] write, and reads the system and [sandbox] read; it can still see " + still,
		"repository: it writes objects, its own branch and the branches in the same folder",
		"processes: " + processes,
		"environment: it has the variables of the agent and [sandbox] env",
		"sockets: " + sockets,
		"agency: it reports, and has no way to the daemon",
	}
	if s.Network == NetworkNone {
		list = append(list, "network: none")
	}
	return list
}

// Image is what a container is made of.
type Image struct {
	Name string `json:"name"` // as configured
	ID   string `json:"id"`   // of its content, as the engine has it: the name may later mean another one
	From string `json:"from"` // what names it: a file of the repository, the configuration or the spec
}

// String returns the image as users see it.
func (i *Image) String() string {
	text := i.Name
	if id := strings.TrimPrefix(i.ID, "sha256:"); len(id) >= 12 {
		text += " (" + id[:12] + ")"
	}
	if i.From != "" {
		text += ", from " + i.From
	}
	return text
}

// Container is a container that an attempt is in, or was in.
type Container struct {
	Name    string
	Engine  string // the path of its socket
	Home    string // the data root of its run
	Run     RunID
	Attempt int
}

// Ports are the ports of a container that the machine reaches.
type Ports struct {
	Forwarded []Port `json:"forwarded"` // in the order of agency.toml; never null
}

// Port is a port of a container that the machine reaches while its attempt runs.
type Port struct {
	Port    int    `json:"port"`    // on which a program in the container can listen
	Address string `json:"address"` // of the machine, HOST:PORT; empty before the start
}

// NewPorts returns ports without addresses; nil for none.
func NewPorts(numbers []int) *Ports {
	if len(numbers) == 0 {
		return nil
	}
	p := &Ports{Forwarded: []Port{}}
	for _, n := range numbers {
		p.Forwarded = append(p.Forwarded, Port{Port: n})
	}
	return p
}

// Numbers returns the ports in the container.
func (p *Ports) Numbers() []int {
	if p == nil {
		return nil
	}
	numbers := make([]int, 0, len(p.Forwarded))
	for _, one := range p.Forwarded {
		numbers = append(numbers, one.Port)
	}
	return numbers
}

// MostPorts is how many ports of a container the machine can reach.
const MostPorts = 32

// ImageName reports whether a text can be the name of an image.
func ImageName(text string) bool {
	return text != "" && len(text) <= 255 && !strings.ContainsAny(text[:1], ".:/@-_") && !strings.ContainsFunc(text, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:/@-", r)
	})
}

// SandboxTrial is the outcome of one try to get out of a sandbox.
type SandboxTrial struct {
	Level    SandboxLevel `json:"level"`    // of the sandbox
	Network  Network      `json:"network"`  // of the sandbox
	Way      string       `json:"way"`      // what was tried, such as a connection by TCP
	Promised bool         `json:"promised"` // the sandbox is to refuse it
	Refused  bool         `json:"refused"`  // the sandbox refused it
	Reason   string       `json:"reason"`   // the error with which the way ended; empty when the way is open
}

func words[T ~string](all []T) string {
	list := make([]string, 0, len(all))
	for _, one := range all {
		list = append(list, string(one))
	}
	return strings.Join(list, ", ")
}

// SandboxSettings are the parts of a sandbox that the user's configuration sets.
type SandboxSettings struct {
	Read  []string // absolute paths that the agent may read, in addition; never nil
	Write []string // absolute paths that it may write; never nil
	Env   []string // patterns of the names of variables that it gets; never nil
	Hosts []string // that it reaches with the network allow; never nil
}

// SandboxState is where an agent's program keeps its state, as absolute paths. What does not exist
// is left out of the sandbox.
type SandboxState struct {
	Read  []string // credentials, and the user's settings
	Write []string // folders of the agent's own, which are made when they are missing
	Own   []string // folders in whose place a run has its own, which its attempts share
	Copy  []string // files that the program rewrites: each attempt gets copies, and the originals stay
	Env   []string // patterns of the names of the variables that it reads
	Hosts []string // that it cannot work without
	Set   []string // NAME=value that it needs in a sandbox
}

// Confinement is what a sandbox has to know about an attempt.
type Confinement struct {
	Sandbox  Sandbox
	Settings SandboxSettings
	State    SandboxState
	Run      *Run
	Limits   []EnforcedLimit
	Argv     []string // Argv[0] is an absolute path
	Env      Environ  // of the attempt, complete
	Set      []string // names of its variables that the user or agency set for it
	Git      PrivateGit
	Program  string   // agency's own
	Mark     []string // entries of Env that distinguish its processes from all others
	Attempt  string   // folder of the attempt
	Note     string   // the file for an EndNote
	Reads    []string // files of the attempt that the agent reads
	Writes   []string // files of the attempt that the agent appends to; they exist
	Home     string   // folder for the copies of SandboxState.Copy
	Own      string   // folder for those of SandboxState.Own
	Hosts    []string // that it reaches with the network allow
	Ports    []int    // that the machine reaches
	Relay    string   // folder of the socket on which its wrapper takes requests to the daemon; empty for none
}

// Refusal is a host that an agent asked for and did not get.
type Refusal struct {
	Host   string    `json:"host"`   // with its port; the agent's word
	Reason string    `json:"reason"` // why it was refused, in words
	Entry  string    `json:"entry"`  // of a list of hosts that would allow it; empty when none would
	At     time.Time `json:"at"`     // of the first time
	Count  int       `json:"count"`  // how often, as last counted
}

// NetworkUse is what an attempt did with the network allow.
type NetworkUse struct {
	Hosts   []string  `json:"hosts"`   // that it reaches
	Granted []Grant   `json:"granted"` // by the user while it ran, or to an earlier attempt for the run
	Refused []Refusal `json:"refused"` // each host once; at most 50
	Problem string    `json:"problem"` // why it reaches nothing any more; empty while the proxy works
}

// Unanswered returns the refusals that the user can answer and has not.
func (u *NetworkUse) Unanswered() []Refusal {
	open := []Refusal{}
	if u == nil {
		return open
	}
	for _, r := range u.Refused {
		if r.Entry != "" && !slices.ContainsFunc(u.Granted, func(g Grant) bool { return g.Entry == r.Entry }) {
			open = append(open, r)
		}
	}
	return open
}

// Grant is the user's answer to a refusal: one more entry of the list of hosts.
type Grant struct {
	Entry string     `json:"entry"` // of a list of hosts, as in the configuration
	Scope GrantScope `json:"scope"` // how long it lasts
	At    time.Time  `json:"at"`    // when the user gave it
}

// GrantScope is how long a grant lasts.
type GrantScope string

// The scopes of grants, the shortest first.
const (
	GrantOnce GrantScope = "once" // until the attempt ends
	GrantRun  GrantScope = "run"  // for later attempts of the run too
)

// Grants returns all grants, or those that last for the run. It is never nil.
func (u *NetworkUse) Grants(lasting bool) []Grant {
	grants := []Grant{}
	if u != nil {
		grants = append(grants, u.Granted...)
	}
	return slices.DeleteFunc(grants, func(g Grant) bool { return lasting && g.Scope != GrantRun })
}

// Entries returns the entries of grants.
func Entries(grants []Grant) []string {
	entries := []string{}
	for _, g := range grants {
		entries = append(entries, g.Entry)
	}
	return entries
}

// MostRefusals is how many hosts the record of an attempt names as refused.
const MostRefusals = 50

// PrivateGit is the git directory of an agent in a sandbox. It stands in the place of the repository's
// git directory, and borrows its objects. A level that shares has none: the agent writes some folders of
// the repository's git directory.
type PrivateGit struct {
	Dir       string   // holds the agent's refs and new objects
	CommonDir string   // the repository's, in whose place it stands
	Entry     string   // the folder of the worktree in it, which is the real one
	Protected []string // paths in Entry that the agent must not change; in a repository of its own they exist
	Objects   []string // folders of objects that are borrowed; Borrowed is where the agent has them
	Hooks     string   // of the repository; empty when it has none
	User      string   // a file with the user's own settings of git
	Shared    []string // folders of the repository that the agent writes
}

// Borrowed returns the path at which an agent has the borrowed objects with an index.
func (PrivateGit) Borrowed(i int) string { return fmt.Sprintf("/run/agency/objects/%d", i) }
