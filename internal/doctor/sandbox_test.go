package doctor_test

import (
	"context"
	"strings"
	"testing"

	"agency"
	"agency/internal/api"
	"agency/internal/doctor"
)

// outcomes are the outcomes of trials on a machine.
type outcomes []agency.SandboxTrial

func (o outcomes) Trials(_ context.Context, level agency.SandboxLevel) ([]agency.SandboxTrial, error) {
	if level == agency.SandboxProcess {
		return o, nil
	}
	return nil, agency.Errorf(agency.CodeSandboxUnavailable, "no Landlock")
}

func (outcomes) TryImage(context.Context, agency.Environ, string) ([]agency.SandboxTrial, error) {
	return nil, agency.Errorf(agency.CodeSandboxUnavailable, "no engine")
}

func (outcomes) Containers(context.Context, agency.Environ, string) (found, away []agency.Container) {
	return nil, nil
}

// engine is a machine whose engine has containers.
type engine struct {
	outcomes

	found []agency.Container
}

func (e engine) Containers(context.Context, agency.Environ, string) (found, away []agency.Container) {
	return e.found, nil
}

// A way that a sandbox is to refuse and does not is a finding; one that it leaves open is none.
func TestOpenWayOutIsFound(t *testing.T) {
	t.Parallel()
	image := func(context.Context, api.DoctorRequest) string { return "" }
	d := doctor.Doctor{Deps: doctor.Deps{Image: image, Sandbox: outcomes{
		{Network: agency.NetworkFull, Way: "connect by TCP"},
		{Network: agency.NetworkFull, Way: "read a secret", Promised: true},
		{Network: agency.NetworkNone, Way: "read a secret", Promised: true, Refused: true},
	}}}
	resp, err := d.TrySandbox(t.Context(), api.DoctorRequest{})
	if err != nil || len(resp.Trials) != 3 || len(resp.Checks) != 4 || resp.Checks[3].Name != "limits" {
		t.Fatalf("%+v, %v", resp, err)
	}
	if c := resp.Checks[0]; c.Level != "error" || !strings.Contains(c.Text, "network full an agent can read a secret") {
		t.Errorf("the finding is %+v", c)
	}
}
