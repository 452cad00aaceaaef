package alert_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/clitest"
)

// ack --all acknowledges each open alert once; one that has ended meanwhile is not an error.
func TestAckAll(t *testing.T) {
	t.Parallel()
	b := clitest.New(t)
	at := time.Now()
	var acked []string
	b.Serve(func(op string, body []byte) (any, error) {
		if op == api.ListAlerts.Name {
			return api.ListAlertsResponse{Alerts: []api.Alert{{ID: "a_1"}, {ID: "a_2", AckedAt: &at}, {ID: "a_3"}, {ID: "a_4"}}}, nil
		}
		var req api.AckAlertRequest
		if err := json.Unmarshal(body, &req); err != nil {
			return nil, err
		}
		if acked = append(acked, req.Alerts...); req.Alerts[0] == "a_3" {
			return nil, agency.Errorf(agency.CodeInvalidState, "the alert a_3 is over")
		}
		return api.AlertsResponse{Alerts: []api.Alert{{ID: req.Alerts[0]}}}, nil
	})
	if exit := b.Run("alerts", "ack", "--all"); exit != agency.ExitOK || b.Out.String() != "acknowledged 2 alerts\n" {
		t.Errorf("exit %d, out %q, err %q", exit, b.Out.String(), b.Err.String())
	}
	if diff := cmp.Diff([]string{"a_1", "a_3", "a_4"}, acked); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, args := range [][]string{{"a_1", "--all"}, {"--all-repos", "a_1"}, {}} {
		if exit := b.Run(append([]string{"alerts", "ack"}, args...)...); exit != agency.ExitUsage {
			t.Errorf("%q: exit %d", args, exit)
		}
	}
}
