package agency

import (
	"strings"

	"agency/internal/plain"
)

// Mode is how agency speaks with the agent of an attempt.
type Mode string

// The modes.
const (
	// ModeTerminal is the default: the agent has a terminal, in which agency types and reads.
	ModeTerminal Mode = "terminal"
	// ModeHeadless is without a terminal: the agent works on the prompt and ends.
	ModeHeadless Mode = "headless"
	// ModeProtocol is the agent's own protocol: each request has an id, and an answer is acknowledged.
	// Nothing is typed and no screen is read.
	ModeProtocol Mode = "protocol"
)

// Modes returns all modes, the default first.
func Modes() []Mode { return []Mode{ModeTerminal, ModeHeadless, ModeProtocol} }

// ChooseMode returns the mode that a layer of settings asks for; empty when it leaves the choice
// open. headless is the short form of two of the modes. The error is E_SPEC_INVALID for a mode that
// does not exist, and for two that differ.
func ChooseMode(mode Mode, headless *bool) (Mode, error) {
	short := Mode("")
	if headless != nil {
		if short = ModeTerminal; *headless {
			short = ModeHeadless
		}
	}
	switch {
	case mode == "":
		return short, nil
	case mode != ModeTerminal && mode != ModeHeadless && mode != ModeProtocol:
		return "", Errorf(CodeSpecInvalid, "the mode %q does not exist", plain.Clip(string(mode))).WithHint("%s", ModeWords())
	case short != "" && (short == ModeHeadless) != (mode == ModeHeadless):
		return "", Errorf(CodeSpecInvalid, "the mode is %s, and headless says %t", mode, short == ModeHeadless).WithHint("drop one of the two")
	default:
		return mode, nil
	}
}

// ModeWords returns the modes as a list for people.
func ModeWords() string {
	words := make([]string, 0, len(Modes()))
	for _, m := range Modes() {
		words = append(words, string(m))
	}
	return strings.Join(words, ", ")
}

// SetMode sets how agency speaks with the agent of an attempt.
func (a *Attempt) SetMode(m Mode) { a.Mode, a.Headless = m, m == ModeHeadless }

// HasTerminal reports whether the agent of an attempt has a terminal, in which agency may read and
// type.
func (a *Attempt) HasTerminal() bool { return a.Mode == ModeTerminal || a.Mode == "" && !a.Headless }

// HasTerminal reports whether the runner gets a terminal.
func (l *Launch) HasTerminal() bool {
	return l.Mode == ModeTerminal || l.Mode == "" && !l.Headless
}

// Saying is what agency says to an agent in the agent's own protocol. Its ID names it in the journal
// of the attempt, so that it is said once, however often a wrapper is killed.
type Saying struct {
	Kind SayingKind `json:"kind"`
	ID   string     `json:"id"`             // of the message, the interruption and so on; of an answer, the id of the request
	Text string     `json:"text,omitempty"` // of a message; the new value of a setting; the id of a message that is taken back
	// Files are the absolute paths of what is attached to a message. Its text names them too.
	Files []string `json:"files,omitempty"`
	// Setting is what is changed.
	Setting Setting `json:"setting,omitempty"`
	// Decision or Answer are the reply to a request.
	Decision Decision `json:"decision,omitempty"`
	Answer   string   `json:"answer,omitempty"`
	By       string   `json:"by"` // who says it: "user", UserTerminal, or a run
}

// UserTerminal is the sender of what the user types into the agent's own terminal.
const UserTerminal = "user-terminal"

// Door is where the agent's own terminal can join a conversation, once and within a limited time.
type Door struct {
	Socket       string `json:"socket"` // a unix socket, absolute
	Conversation string `json:"conversation"`
}

// Said is what the record keeps of a Saying. It does not have the text.
type Said struct {
	Kind      SayingKind `json:"says"`
	ID        string     `json:"id"`
	By        string     `json:"by"`
	Terminal  bool       `json:"terminal,omitempty"` // the user typed it into the terminal of the run
	Confirmed bool       `json:"confirmed"`          // the agent acknowledged it
	Bytes     int        `json:"bytes,omitempty"`    // of a message
	Files     int        `json:"files,omitempty"`    // how many are attached to a message
	Setting   Setting    `json:"setting,omitempty"`
	Value     string     `json:"value,omitempty"`   // of the setting
	Message   string     `json:"message,omitempty"` // that was taken back
}

// Said returns what the record keeps of the saying.
func (s *Saying) Said(confirmed bool) Said {
	said := Said{Kind: s.Kind, ID: s.ID, By: s.By, Confirmed: confirmed}
	switch s.Kind {
	case SaysMessage:
		said.Bytes, said.Files = len(s.Text), len(s.Files)
	case SaysSetting:
		said.Setting, said.Value = s.Setting, s.Text
	case SaysTakeBack:
		said.Message = s.Text
	case SaysAnswer, SaysInterrupt:
	}
	return said
}

// SayingKind is the kind of a Saying.
type SayingKind string

// The kinds.
const (
	SaysMessage   SayingKind = "message"
	SaysAnswer    SayingKind = "answer"
	SaysInterrupt SayingKind = "interrupt"
	SaysSetting   SayingKind = "setting" // to use another model or permission mode
	SaysTakeBack  SayingKind = "take_back"
)

// Setting names a setting that can be changed while the agent lives.
type Setting string

// The settings.
const (
	SettingModel          Setting = "model"
	SettingPermissionMode Setting = "permission_mode"
)

// Words returns the setting as people read it.
func (s Setting) Words() string { return strings.ReplaceAll(string(s), "_", " ") }

// Settings are what an agent uses now, and what it offers, by its own names and as far as its
// protocol tells. They are untrusted.
type Settings struct {
	Model           string   `json:"model"`            // the model; empty when unknown
	Models          []string `json:"models"`           // those that it offers; it may know more
	PermissionMode  string   `json:"permission_mode"`  // how it asks for permission; empty when unknown
	PermissionModes []string `json:"permission_modes"` // those that it offers
}

// Of returns the present value of a setting, and what the agent offers.
func (s *Settings) Of(setting Setting) (value string, offered []string) {
	if setting == SettingPermissionMode {
		return s.PermissionMode, s.PermissionModes
	}
	return s.Model, s.Models
}

// QueuedMessage is a message that an agent has, and has not begun with.
type QueuedMessage struct {
	ID   string `json:"id"`   // what takes it back
	By   string `json:"by"`   // who sent it: "user", or the name of a run
	Text string `json:"text"` // the beginning, on one line
}

// ParseQueue reads a queue as evidence has it. It is never nil.
func ParseQueue(lines string) []QueuedMessage {
	queue := []QueuedMessage{}
	for line := range strings.Lines(lines) {
		if parts := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 3); len(parts) == 3 {
			queue = append(queue, QueuedMessage{ID: parts[0], By: parts[1], Text: parts[2]})
		}
	}
	return queue
}
