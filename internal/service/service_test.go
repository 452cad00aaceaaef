package service_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"agency/internal/service"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// part is a service that records its calls.
type part struct {
	service.Background
	name string
	fail error
	did  *[]string
}

func (p *part) Start(ctx context.Context) error {
	return p.Background.Start(ctx, func(ctx context.Context) error {
		p.Go(func() { <-ctx.Done() })
		if p.fail == nil {
			*p.did = append(*p.did, "start "+p.name)
		}
		return p.fail
	})
}

func (p *part) Stop() {
	p.Background.Stop()
	*p.did = append(*p.did, "stop "+p.name)
}

// Services start in order and stop in the reverse order. The end of the context of their start
// stops none.
func TestStartAll(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var did []string
	stop, err := service.StartAll(ctx, &part{name: "a", did: &did}, &part{name: "b", did: &did})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if want := []string{"start a", "start b"}; !slices.Equal(did, want) {
		t.Errorf("after the context ended: %q", did)
	}
	stop()
	if want := []string{"start a", "start b", "stop b", "stop a"}; !slices.Equal(did, want) {
		t.Errorf("afterwards: %q", did)
	}
}

// When a service fails to start, nothing is left running: not itself, and not those before it.
func TestStartAllFails(t *testing.T) {
	var did []string
	broken := errors.New("broken")
	_, err := service.StartAll(t.Context(), &part{name: "a", did: &did}, &part{name: "b", did: &did, fail: broken}, &part{name: "c", did: &did})
	if !errors.Is(err, broken) {
		t.Fatalf("the error is %v", err)
	}
	if want := []string{"start a", "stop a"}; !slices.Equal(did, want) {
		t.Errorf("it did %q", did)
	}
}

// Start of a running service and Stop of a stopped one do nothing, and a stopped service can start
// again.
func TestBackground(t *testing.T) {
	var b service.Background
	var began int
	begin := func(ctx context.Context) error {
		began++
		b.Go(func() { <-ctx.Done() })
		return nil
	}
	b.Stop()
	for range 2 {
		if err := b.Start(t.Context(), begin); err != nil {
			t.Fatal(err)
		}
	}
	b.Stop()
	b.Stop()
	if began != 1 {
		t.Errorf("it began %d times", began)
	}
	if err := b.Start(t.Context(), begin); err != nil || began != 2 {
		t.Errorf("after Stop it began %d times: %v", began, err)
	}
	b.Stop()
}
