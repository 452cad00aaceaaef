package menu_test

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"agency"
	"agency/internal/api"
	"agency/internal/tui/menu"
	"agency/internal/tui/page"
)

// says runs the menu with what a user types, and returns what it printed and what the daemon was
// asked to do.
func says(t *testing.T, typed string) (printed string, asked []string) {
	t.Helper()
	asks := api.Run{ID: "r_1", Name: "auth-fix", Status: agency.NeedsInput, Summary: "may it? \x1b[2Jevil", Request: &agency.Request{ID: "p1", Kind: agency.AsksPermission, Tool: "Bash", Text: "npm test"}}
	works := api.Run{ID: "r_2", Name: "search", Status: agency.Working, Summary: "editing"}
	var out strings.Builder
	err := menu.Run(t.Context(), menu.Options{
		In: strings.NewReader(typed), Out: &out, Command: func(args ...string) *exec.Cmd { return exec.Command("true", args...) },
		Daemon: page.Daemon{
			Follow: func(context.Context, func(agency.RunID), func()) error { return nil },
			ListRuns: func(context.Context, api.ListRunsRequest) (api.ListRunsResponse, error) {
				return api.ListRunsResponse{Runs: []api.Run{works, asks}}, nil
			},
			AnswerRun: func(_ context.Context, req api.AnswerRunRequest) (api.AnswerRunResponse, error) {
				asked = append(asked, fmt.Sprintf("%s %s %s", req.Run, strings.Split(req.PromptID, "@")[0], req.Decision))
				return api.AnswerRunResponse{Confirmed: true}, nil
			},
			StopRun: func(_ context.Context, req api.RunRequest) (api.StopRunResponse, error) {
				asked = append(asked, "stop "+req.Run)
				return api.StopRunResponse{}, agency.Errorf(agency.CodeInvalidState, "it has ended").WithHint("agency rm search")
			},
			ShowScreen: func(context.Context, api.ShowScreenRequest) (api.ShowScreenResponse, error) {
				return api.ShowScreenResponse{Screen: agency.Screen{Rows: [][]agency.StyledText{{{Text: "one "}, {Text: "row"}}, {{Text: "another"}}}}}, nil
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), asked
}

// Everything is chosen by a number, what needs the user comes first, and no command of an agent
// reaches the terminal.
func TestMenu(t *testing.T) {
	t.Parallel()
	printed, asked := says(t, "1\n1\n2\n1\n2\n7\nn\n2\n7\ny\nnonsense\n9\nq\n")
	for _, text := range []string{
		"1. auth-fix, needs input: may it? evil\n2. search, working: editing\n", "it asks: Bash npm test\n1. allow it once\n2. reject it\n", "answered\n",
		"one row\nanother\n", "are you sure? y/n\n", "error: it has ended\nagency rm search\n", `"nonsense" is not a number of the list`, `"9" is not a number`,
	} {
		if !strings.Contains(printed, text) {
			t.Errorf("%q is not in\n%s", text, printed)
		}
	}
	if got := strings.Join(asked, ", "); got != "r_1 p1 allow, stop r_2" {
		t.Errorf("asked %s", got)
	}
	if strings.Contains(printed, "\x1b") {
		t.Errorf("an escape sequence is in %q", printed)
	}
}
