package acp

import (
	"cmp"

	"agency"
	"agency/internal/protocol"
)

// listed are the settings that an agent reports when a session begins: as Models and Modes, or as
// Options. Options are also reported at each change.
type listed struct {
	Models struct {
		Current   string `json:"currentModelId"`
		Available []struct {
			ID string `json:"modelId"`
		} `json:"availableModels"`
	} `json:"models"`
	Modes struct {
		Current   string `json:"currentModeId"`
		Available []struct {
			ID string `json:"id"`
		} `json:"availableModes"`
	} `json:"modes"`
	Options []struct {
		ID      string `json:"id"`
		Current string `json:"currentValue"`
		Values  []struct {
			Value string `json:"value"`
		} `json:"options"`
	} `json:"configOptions"`
}

// settings returns the settings that are listed. The modes of the protocol decide when the agent asks for
// permission, and whether it only plans.
func (l *listed) settings() agency.Settings {
	now := agency.Settings{Model: l.Models.Current, PermissionMode: l.Modes.Current}
	for _, m := range l.Models.Available {
		now.Models = append(now.Models, m.ID)
	}
	for _, m := range l.Modes.Available {
		now.PermissionModes = append(now.PermissionModes, m.ID)
	}
	for _, o := range l.Options {
		var values []string
		for _, v := range o.Values {
			values = append(values, v.Value)
		}
		switch {
		case o.ID == "model" && len(now.Models) == 0:
			now.Model, now.Models = cmp.Or(now.Model, o.Current), values
		case o.ID == "mode" && len(now.PermissionModes) == 0:
			now.PermissionMode, now.PermissionModes = cmp.Or(now.PermissionMode, o.Current), values
		}
	}
	return now
}

func saySetting(at protocol.Place, id string, what agency.Setting, value string) ([]byte, error) {
	method, params := "session/set_model", map[string]any{"sessionId": at.Conversation, "modelId": value}
	if what == agency.SettingPermissionMode {
		method, params = "session/set_mode", map[string]any{"sessionId": at.Conversation, "modeId": value}
	}
	return encode(map[string]any{"id": setting + id, "method": method, "params": params}), nil
}
