package doctor

import (
	"context"
	"fmt"

	"agency"
	"agency/internal/api"
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
	return resp, nil
}
