package supervisor_test

import (
	"context"
	"sync"

	"agency"
	"agency/internal/supervisor"
)

// fakeLink is the connection to a wrapper.
type fakeLink struct {
	StopFunc  func(agency.EndedBy) error
	ForceFunc func() error // nil is StopFunc
	KeysFunc  func(keys string)
	AllowFunc func(entries []string)
	GoFunc    func() error // starts the runner
	// BeforeKeys is called before the look that precedes keys.
	BeforeKeys func()
	// InputFunc is called before a text is typed; its error prevents the typing.
	InputFunc func(ctx context.Context) error
	// SayFunc takes what is said in the agent's own protocol.
	SayFunc   func(agency.Saying) (agency.Delivery, error)
	refusal   error                  // of every input
	last      agency.Typing          // what was typed before
	TypedFunc func()                 // called between a text and its Enter
	EnterFunc func() agency.Delivery // the effect of an Enter; nil is that it was read
	gone      error                  // instead of the answer after Enter
	CloseFunc func()                 // called when the link is closed

	mu     sync.Mutex
	inputs []string
	keys   []string
	closed bool
}

func (l *fakeLink) Input(ctx context.Context, text string, look supervisor.Look) (agency.Delivery, error) {
	if l.InputFunc != nil {
		if err := l.InputFunc(ctx); err != nil {
			return agency.Delivery{}, err
		}
	}
	if l.refusal != nil {
		return agency.Delivery{}, l.refusal
	}
	unsent, err := look(ctx, l.last)
	if err != nil {
		return agency.Delivery{}, err
	}
	if !unsent {
		l.mu.Lock()
		l.inputs = append(l.inputs, text)
		l.mu.Unlock()
	}
	if l.TypedFunc != nil {
		l.TypedFunc()
	}
	if _, err := look(ctx, agency.Typing{Enter: true}); err != nil {
		return agency.Delivery{}, err
	}
	if l.gone != nil {
		return agency.Delivery{}, l.gone
	}
	if l.EnterFunc != nil {
		return l.EnterFunc(), nil
	}
	return agency.Delivery{Confirmed: true, Effect: agency.EffectRead}, nil
}

func (l *fakeLink) Say(_ context.Context, s agency.Saying) (agency.Delivery, error) {
	return l.SayFunc(s)
}

func (l *fakeLink) Keys(ctx context.Context, keys string, look supervisor.Look) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if l.BeforeKeys != nil {
		l.BeforeKeys()
	}
	if _, err := look(ctx, agency.Typing{}); err != nil {
		return err
	}
	l.mu.Lock()
	l.keys = append(l.keys, keys)
	l.mu.Unlock()
	if l.KeysFunc != nil {
		l.KeysFunc(keys)
	}
	return nil
}

func (l *fakeLink) Stop(_ context.Context, by agency.EndedBy) error {
	if l.StopFunc != nil {
		return l.StopFunc(by)
	}
	return nil
}

func (l *fakeLink) Force(ctx context.Context) error {
	if l.ForceFunc != nil {
		return l.ForceFunc()
	}
	return l.Stop(ctx, agency.EndedByStop)
}

func (l *fakeLink) Environ(context.Context) ([]string, error) { return []string{"HOME=/home/u"}, nil }

func (l *fakeLink) Door(context.Context) (agency.Door, error) {
	return agency.Door{Socket: "/door", Conversation: "c1"}, nil
}

func (l *fakeLink) Allow(_ context.Context, entries []string) error {
	if l.AllowFunc != nil {
		l.AllowFunc(entries)
	}
	return nil
}

func (l *fakeLink) Go(context.Context) error {
	if l.GoFunc != nil {
		return l.GoFunc()
	}
	return nil
}

func (l *fakeLink) Close() error {
	if l.CloseFunc != nil {
		l.CloseFunc()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	return nil
}
