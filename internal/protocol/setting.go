package protocol

import (
	"cmp"
	"slices"
	"strings"

	"agency"
	"agency/internal/plain"
)

// Limits of what is told of messages that the agent has not begun with.
const (
	mostQueued = 20
	mostQueue  = 120 // characters of one
)

// set returns the frame that changes a setting.
func (t *Talk) set(s agency.Saying) ([]byte, error) {
	if t.dialect.Set == nil {
		return nil, agency.Errorf(agency.CodeInputRefused, "%s cannot change the %s", t.dialect.Name, s.Setting.Words())
	}
	return t.dialect.Set(t.Place, s.ID, s.Setting, t.fullName(s.Setting, s.Text))
}

// fullName returns the name of what the agent offers; the end of it, after "#", is enough.
func (t *Talk) fullName(setting agency.Setting, name string) string {
	_, offered := t.Settings.Of(setting)
	for _, full := range offered {
		if strings.HasSuffix(full, "#"+name) {
			return full
		}
	}
	return name
}

// changed returns what an agent uses after it took the change of a setting: what it says, or else what
// was asked for.
func (t *Talk) changed(s agency.Saying, now agency.Settings) agency.Settings {
	if s.Setting == agency.SettingModel {
		now.Model = cmp.Or(now.Model, s.Text)
	} else {
		now.PermissionMode = cmp.Or(now.PermissionMode, t.fullName(s.Setting, s.Text))
	}
	return now
}

// use takes what the agent uses and offers.
func (t *Talk) use(now agency.Settings) {
	old := &t.Settings
	old.Model, old.PermissionMode = cmp.Or(now.Model, old.Model), cmp.Or(now.PermissionMode, old.PermissionMode)
	if len(now.Models) > 0 {
		old.Models = now.Models
	}
	if len(now.PermissionModes) > 0 {
		old.PermissionModes = now.PermissionModes
	}
}

// settled returns what an agent uses and offers as evidence.
func settled(conversation string, now agency.Settings) agency.Evidence {
	return agency.Evidence{
		Signal: agency.SignalSession, Conversation: conversation, Model: now.Model, PermissionMode: now.PermissionMode,
		Models: optionLines(now.Models), PermissionModes: optionLines(now.PermissionModes),
	}
}

// takeBack returns the frame that takes back a message that the agent has not begun with.
func (t *Talk) takeBack(s agency.Saying) ([]byte, error) {
	i := slices.IndexFunc(t.Said, func(a said) bool { return a.Intent.Kind == agency.SaysMessage && a.Intent.ID == s.Text })
	switch {
	case i < 0:
		return nil, agency.Errorf(agency.CodeInvalidState, "no message to its agent has the id %s", plain.Clip(s.Text))
	case t.Said[i].Stage == dropped:
		return nil, agency.Errorf(agency.CodeInvalidState, "its agent does not have the message %s any more", plain.Clip(s.Text))
	case t.Said[i].Stage >= begun:
		return nil, agency.Errorf(agency.CodeInvalidState, "its agent has begun with the message %s", plain.Clip(s.Text)).WithHint("agency interrupt ends its turn")
	case t.dialect.TakeBack == nil:
		return nil, agency.Errorf(agency.CodeInputRefused, "%s cannot take back a message", t.dialect.Name).WithHint("agency interrupt ends its turn")
	}
	return t.dialect.TakeBack(s.ID, s.Text), nil
}

// drop takes that the agent will not begin with a message that it has.
func (t *Talk) drop(id string) {
	for i := range t.Said {
		if s := &t.Said[i]; s.Intent.Kind == agency.SaysMessage && s.Stage < begun && (id == "" && s.Stage == taken || id == s.Intent.ID) {
			s.Stage, s.Intent = dropped, *s.Intent.read()
		}
	}
}

// queue returns the messages that the agent has in its turn, and has not begun with, as evidence.
func (t *Talk) queue() string {
	var b strings.Builder
	n := 0
	for i := range t.Said {
		s := &t.Said[i]
		if !t.Turn || s.Intent.Kind != agency.SaysMessage || s.Stage != taken || n == mostQueued {
			continue
		}
		n++
		text := []rune(plain.OneLine(s.Intent.Text))
		if len(text) > mostQueue {
			text = append(text[:mostQueue], '…')
		}
		b.WriteString(s.Intent.ID + " " + s.Intent.By + " " + string(text) + "\n")
	}
	return b.String()
}
