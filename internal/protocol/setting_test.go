package protocol_test

import (
	"slices"
	"strings"
	"testing"

	"agency"
	"agency/internal/protocol"
)

// settable is a protocol that can change settings and take back messages.
func settable() *protocol.Dialect {
	d := events
	d.Set = func(_ protocol.Place, id string, _ agency.Setting, value string) ([]byte, error) {
		return []byte(id + value), nil
	}
	d.TakeBack = func(id, message string) []byte { return []byte(id + message) }
	return &d
}

// What an agent uses is what it acknowledged: by its own word, or else what was asked for.
func TestSettings(t *testing.T) {
	t.Parallel()
	talk := protocol.New(settable(), protocol.Start{Dir: "/work"})
	hear(t, talk, protocol.Event{Kind: protocol.Session, Settings: agency.Settings{Model: "one", PermissionModes: []string{"https://x#ask", "https://x#plan"}}})
	for i, step := range []struct {
		setting     agency.Setting
		value       string
		reply       protocol.Event
		frame, want string
	}{
		{agency.SettingModel, "two", protocol.Event{}, "two", "two"},
		{agency.SettingModel, "three", protocol.Event{Settings: agency.Settings{Model: "three-9"}}, "three", "three-9"},
		{agency.SettingModel, "four", protocol.Event{Failed: true, Text: "no such model"}, "four", ""},
		{agency.SettingPermissionMode, "plan", protocol.Event{}, "https://x#plan", "https://x#plan"},
	} {
		s := agency.Saying{Kind: agency.SaysSetting, ID: string(rune('a' + i)), Setting: step.setting, Text: step.value}
		frame, err := talk.Frame(s)
		if err != nil || string(frame) != s.ID+step.frame {
			t.Errorf("%s: frame %s, %v", step.value, frame, err)
		}
		talk.Intend(protocol.Intent{Saying: s})
		step.reply.Kind, step.reply.ID = protocol.Replied, s.ID
		got := ""
		for _, e := range hear(t, talk, step.reply).Evidence {
			got += e.Model + e.PermissionMode
		}
		if p := talk.Progress(s); got != step.want || p.Failed != step.reply.Text {
			t.Errorf("%s: got %q, %+v", step.value, got, p)
		}
	}
	if _, err := protocol.New(&events, protocol.Start{}).Frame(agency.Saying{Kind: agency.SaysSetting, Setting: agency.SettingPermissionMode}); err == nil || !strings.Contains(err.Error(), "events cannot change the permission mode") {
		t.Errorf("a protocol that cannot: %v", err)
	}
}

// A message is listed from when the agent has it until it begins with it, is at rest, or gives it back.
func TestQueue(t *testing.T) {
	t.Parallel()
	talk := protocol.New(settable(), protocol.Start{Dir: "/work"})
	say := func(kind agency.SayingKind, id, text string) {
		talk.Intend(protocol.Intent{Saying: agency.Saying{Kind: kind, ID: id, Text: text, By: agency.User}})
	}
	for _, id := range []string{"m1", "m2", "m3"} {
		say(agency.SaysMessage, id, "do\n"+id)
	}
	say(agency.SaysTakeBack, "t", "m2")
	for _, step := range []struct {
		kind protocol.Kind
		id   string
		want []string // ids; nil: nothing is told
	}{
		{protocol.Working, "", nil},
		{protocol.Taken, "m1", []string{"m1"}},
		{protocol.Begun, "m1", []string{}},
		{protocol.Taken, "m2", []string{"m2"}},
		{protocol.Taken, "m3", []string{"m2", "m3"}},
		{protocol.Replied, "t", []string{"m3"}},
		{protocol.Resting, "", []string{}},
	} {
		var got []string
		for _, e := range hear(t, talk, protocol.Event{Kind: step.kind, ID: step.id}).Evidence {
			if e.Signal == agency.SignalQueue {
				got = []string{}
				for _, m := range agency.ParseQueue(e.Queue) {
					got = append(got, m.ID)
					if m.By != agency.User || m.Text != "do "+m.ID {
						t.Errorf("got %+v", m)
					}
				}
			}
		}
		if !slices.Equal(got, step.want) || (got == nil) != (step.want == nil) {
			t.Errorf("%v %s: got %v, want %v", step.kind, step.id, got, step.want)
		}
	}
	if kept, err := talk.Memory(); err != nil || strings.Contains(string(kept), `do\nm`) {
		t.Errorf("texts that are not needed are kept: %s, %v", kept, err)
	}
	for id, want := range map[string]string{"m1": "has begun with", "m2": "any more", "m4": "no message"} {
		if _, err := talk.Frame(agency.Saying{Kind: agency.SaysTakeBack, ID: "x", Text: id}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", id, err)
		}
	}
}
