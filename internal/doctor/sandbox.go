package doctor

import (
	"context"
	"fmt"
	"strings"

	"agency"
	"agency/internal/api"
	"agency/internal/limit"
)

// TrySandbox tries to get out of every sandbox that this machine can make. A way that is open
// although its sandbox is to refuse it is a finding.
func (d *Doctor) TrySandbox(ctx context.Context) (api.DoctorResponse, error) {
	trials, err := d.Sandbox.Trials(ctx)
	if agency.IsCode(err, agency.CodeSandboxUnavailable) {
		return api.DoctorResponse{Checks: []api.Check{failed("sandbox", err)}, Trials: []agency.SandboxTrial{}}, nil
	}
	if err != nil {
		return api.DoctorResponse{}, err
	}
	resp := api.DoctorResponse{Checks: []api.Check{}, Trials: trials}
	for _, t := range trials {
		if t.Promised && !t.Refused {
			resp.Checks = append(resp.Checks, api.Check{
				Name: "sandbox", Level: levelError, Text: fmt.Sprintf("with the network %s an agent can %s", t.Network, t.Way),
				Fix: "give agents of such a sandbox nothing that they must not reach, and report this with the version of the kernel",
			})
		}
	}
	if len(resp.Checks) == 0 {
		resp.Checks = append(resp.Checks, api.Check{Name: "sandbox", Level: levelOK, Text: "process: bubblewrap refused everything that it is to refuse"})
	}
	resp.Checks = append(resp.Checks, limits())
	return resp, nil
}

// limits returns what enforces the limits of a run here.
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
