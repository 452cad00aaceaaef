package doctor

import (
	"context"
	"fmt"
	"strings"

	"agency"
	"agency/internal/api"
	"agency/internal/limit"
)

// TrySandbox tries to break out of every sandbox that this machine can make. A way out that the
// sandbox should refuse, and does not, is a finding.
func (d *Doctor) TrySandbox(ctx context.Context, req api.DoctorRequest) (api.DoctorResponse, error) {
	resp := api.DoctorResponse{Checks: []api.Check{}, Trials: []agency.SandboxTrial{}}
	image := d.Image(ctx, req)
	process := "process: bubblewrap"
	if agency.SandboxProcess.Shares() {
		process = "process: sandbox-exec"
	}
	for _, level := range []struct {
		try   func() ([]agency.SandboxTrial, error)
		words string
		found string // of a sandbox that this machine cannot make
	}{
		{func() ([]agency.SandboxTrial, error) { return d.Sandbox.Trials(ctx, agency.SandboxProcess) }, process, levelError},
		{func() ([]agency.SandboxTrial, error) { return d.Sandbox.Trials(ctx, agency.SandboxLandlock) }, "landlock: the kernel", levelNote},
		{func() ([]agency.SandboxTrial, error) { return d.Sandbox.TryImage(ctx, req.Env, image) }, "container: the engine", levelNote},
	} {
		trials, err := level.try()
		switch {
		case agency.IsCode(err, agency.CodeSandboxUnavailable):
			c := failed("sandbox", err)
			c.Level = level.found
			resp.Checks = append(resp.Checks, c)
		case err != nil:
			return api.DoctorResponse{}, err
		default:
			resp.Checks = append(resp.Checks, tried(trials, level.words+" refused everything that it is to refuse")...)
		}
		resp.Trials = append(resp.Trials, trials...)
	}
	resp.Checks = append(resp.Checks, limits())
	return resp, nil
}

// tried returns a finding for each way out that a level should refuse and does not, or else one
// finding with these words.
func tried(trials []agency.SandboxTrial, words string) []api.Check {
	checks := []api.Check{}
	for _, t := range trials {
		if t.Promised && !t.Refused {
			checks = append(checks, api.Check{
				Name: "sandbox", Level: levelError, Text: fmt.Sprintf("%s: with the network %s an agent can %s", t.Level, t.Network, t.Way),
				Fix: "give agents of such a sandbox nothing that they must not reach, and report this with the version of the kernel",
			})
		}
	}
	if len(checks) == 0 {
		checks = append(checks, api.Check{Name: "sandbox", Level: levelOK, Text: words})
	}
	return checks
}

// limits returns the finding about what enforces the limits of a run on this machine.
func limits() api.Check {
	c := api.Check{Name: "limits", Level: levelOK}
	var kept []string
	for _, name := range agency.LimitNames() {
		one := agency.Resources{}
		if err := one.Put(name, "16777216"); err != nil {
			return failed("limits", err)
		}
		how, err := limit.How(agency.SandboxProcess, one)
		if err != nil {
			c.Level, c.Fix = levelNote, agency.AsError(err).Hint
			kept = append(kept, fmt.Sprintf("%s cannot be kept", name))
			continue
		}
		kept = append(kept, fmt.Sprintf("%s by %s", name, how[0].By))
	}
	c.Text = strings.Join(kept, ", ")
	return c
}
