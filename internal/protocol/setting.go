package protocol

import (
	"cmp"
	"strings"

	"agency"
	"agency/internal/plain"
)

// set returns the frame that changes a setting.
func (t *Talk) set(s agency.Saying) ([]byte, error) {
	if t.dialect.Set == nil {
		return nil, agency.Errorf(agency.CodeInputRefused, "%s cannot change the %s", t.dialect.Name, s.Setting.Words())
	}
	return t.dialect.Set(t.Place, s.ID, s.Setting, fullName(t.Settings, s.Setting, s.Text))
}

// fullName returns the full name of a value that the agent offers for a setting; a name may be what
// follows "#" in the full one.
func fullName(offers agency.Settings, setting agency.Setting, name string) string {
	_, offered := offers.Of(setting)
	for _, full := range offered {
		if strings.HasSuffix(full, "#"+name) {
			return full
		}
	}
	return name
}

// effective returns what an agent uses after it accepted the change of a setting: what it reports, or
// else what agency asked for.
func effective(s agency.Saying, reported, before agency.Settings) agency.Settings {
	if s.Setting == agency.SettingModel {
		reported.Model = cmp.Or(reported.Model, s.Text)
	} else {
		reported.PermissionMode = cmp.Or(reported.PermissionMode, fullName(before, s.Setting, s.Text))
	}
	return reported
}

// update returns settings after the agent reported some; what it left out stays as it was.
func update(old, reported agency.Settings) agency.Settings {
	old.Model, old.PermissionMode = cmp.Or(reported.Model, old.Model), cmp.Or(reported.PermissionMode, old.PermissionMode)
	if len(reported.Models) > 0 {
		old.Models = reported.Models
	}
	if len(reported.PermissionModes) > 0 {
		old.PermissionModes = reported.PermissionModes
	}
	return old
}

// sessionEvidence returns what an agent uses and offers as evidence.
func sessionEvidence(conversation string, now agency.Settings) agency.Evidence {
	return agency.Evidence{
		Signal: agency.SignalSession, Conversation: conversation, Model: now.Model, PermissionMode: now.PermissionMode,
		Models: optionLines(now.Models), PermissionModes: optionLines(now.PermissionModes),
	}
}

// takeBack returns the frame that takes back a message with which the agent has not begun.
func (t *Talk) takeBack(s agency.Saying) ([]byte, error) {
	i := t.deliveryIndex(agency.SaysMessage, s.Text)
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
