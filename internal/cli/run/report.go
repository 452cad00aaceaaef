package run

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/spf13/cobra"

	"agency"
	"agency/internal/cli/command"
	"agency/internal/contract"
	"agency/internal/duration"
	"agency/internal/file"
	"agency/internal/plain"
	"agency/internal/spool"
)

// reportOptions are the flags of agency report.
type reportOptions struct {
	*command.Deps

	summary   string
	questions []string
	blockers  []string
	howToTest string
	risks     []string
	quiet     time.Duration
}

// NewReport returns the command agency report.
func NewReport(d *command.Deps) *cobra.Command {
	o := &reportOptions{Deps: d}
	words := reportWords()
	cmd := command.New(cobra.Command{
		Use:     "report STATUS",
		Short:   "Report your status (for the agent of a run)",
		GroupID: "run",
		Long: `For agents: reports the status of this run to its owner. Call it inside the
worktree of the run.

  working           you work on the task                --summary
  needs_input       you cannot go on without an answer  --summary, --question
  blocked           something outside stops you         --summary, --blocker
  ready_for_review  the task is done and checked        --summary, --how-to-test

These replace the file .agency/state/runner_status.json. Three more leave the file as it is and take
only --summary: error (something failed and you cannot repair it), complete (everything is done),
help (a user should look).

With working, --quiet-for announces how long you will report nothing, as during a long build or
test: until then you do not count as stalled.`,
		Example: `  agency report working --summary "Moving the session check into the middleware"
  agency report working --summary "Running the whole test suite" --quiet-for 20m
  agency report needs_input --summary "Two ways" --question "Keep old sessions?"
  agency report ready_for_review --summary "Done" --how-to-test "go test ./..."`,
		Args:      reportArgs,
		ValidArgs: words,
	}, o.run)
	f := cmd.Flags()
	f.StringVar(&o.summary, "summary", "", "what you do, need or did, as one short `TEXT`")
	f.StringArrayVar(&o.questions, "question", nil, "what you need to know, as `TEXT` (repeatable)")
	f.StringArrayVar(&o.blockers, "blocker", nil, "what stops you, as `TEXT` (repeatable)")
	f.StringVar(&o.howToTest, "how-to-test", "", "how a reviewer can check the work, as `TEXT`")
	f.StringArrayVar(&o.risks, "risk", nil, "what a reviewer should know, as `TEXT` (repeatable)")
	command.DurationVar(f, &o.quiet, "quiet-for", 0, "with working: how long you will report nothing, a `DURATION` such as 20m")
	return cmd
}

func (o *reportOptions) run(_ *cobra.Command, args []string) error {
	word, err := parseReport(args[0])
	if err != nil {
		return err
	}
	resp, err := report(o.Deps, word, o)
	if err != nil {
		return err
	}
	return o.Print(resp, func(w io.Writer) { _, _ = fmt.Fprintln(w, "reported "+word+whatNow(word)) })
}

// reportWords returns every status that can be reported.
func reportWords() []string {
	words := []string{}
	for _, w := range agency.Words() {
		words = append(words, string(w))
	}
	return append(words, string(agency.ReportsError), string(agency.ReportsComplete), string(agency.ReportsHelp))
}

// reportArgs takes one status. More arguments are a summary without its flag.
func reportArgs(_ *cobra.Command, args []string) error {
	if len(args) < 2 {
		if len(args) == 0 {
			return agency.Errorf(agency.CodeUsage, "agency report needs a status: %s", strings.Join(reportWords(), ", ")).
				WithHint(`agency report working --summary "what you do now"`)
		}
		return nil
	}
	return agency.Errorf(agency.CodeUsage, "agency report takes one status, and was given %s", command.Count(len(args), "argument")).
		WithHint("agency report %s --summary %s", args[0], shellQuote(strings.Join(args[1:], " ")))
}

// parseReport reads a status as agents type it: "needs-input", "NEEDS_INPUT" and "needs_input" are
// the same.
func parseReport(s string) (string, error) {
	word, words := strings.ReplaceAll(strings.ToLower(s), "-", "_"), reportWords()
	if slices.Contains(words, word) {
		return word, nil
	}
	err := agency.Errorf(agency.CodeUsage, "%q is not a status; there are %s", s, strings.Join(words, ", "))
	if near := plain.Nearest(word, words); near != "" {
		return "", err.WithHint("did you mean: agency report %s", near)
	}
	return "", err.WithHint("agency report --help")
}

// reported is what the command prints with --json.
type reported struct {
	Status   string           `json:"status"`
	Worktree string           `json:"worktree_path"`
	Contract *agency.Contract `json:"runner_status"` // as it was written; null for error, complete and help
	Quiet    *time.Time       `json:"quiet_until"`
}

// report writes an agent's report into the worktree of its run, the one place that it can write in
// every sandbox. The daemon reads it from there.
func report(d *command.Deps, word string, o *reportOptions) (*reported, error) {
	root, err := runWorktree(d)
	if err != nil {
		return nil, err
	}
	if err := checkAttempt(d, root); err != nil {
		return nil, err
	}
	now := time.Now().UTC()
	resp := &reported{Status: word, Worktree: root}
	evidence := agency.Evidence{
		At: now, Source: agency.FromReport, Signal: agency.SignalReport, ID: ulid.MustNew(ulid.Timestamp(now), rand.Reader).String(),
		Report: agency.ReportsStatus, Text: o.summary, Quiet: o.quiet,
	}
	if slices.Contains(agency.Words(), agency.ReportedStatus(word)) {
		if resp.Contract, err = o.contract(agency.ReportedStatus(word), now); err != nil {
			return nil, err
		}
		if err := writeContract(root, resp.Contract); err != nil {
			return nil, err
		}
	} else {
		if err := o.checkBeside(word); err != nil {
			return nil, err
		}
		evidence.Report = agency.Report(word)
	}
	if err := spool.AppendBeneath(root, agency.ReportsFile, agency.ReportsLimit, evidence); err != nil {
		return nil, cannotReport(root, agency.ReportsFile, err)
	}
	if o.quiet > 0 {
		until := now.Add(o.quiet)
		resp.Quiet = &until
	}
	return resp, nil
}

// whatNow returns what an agent must do after its report.
func whatNow(word string) string {
	switch agency.ReportedStatus(word) {
	case agency.ReportedNeedsInput, agency.ReportedBlocked:
		return "; now stop, and wait for the answer"
	default:
		return ""
	}
}

// runWorktree returns the worktree of the run that this process belongs to.
func runWorktree(d *command.Deps) (string, error) {
	if root := d.Getenv("AGENCY_WORKTREE"); root != "" {
		if !isFolder(root) {
			return "", agency.Errorf(agency.CodeInvalidPath, "the worktree %s, which AGENCY_WORKTREE names, is not there", root)
		}
		return root, nil
	}
	for dir := d.Dir; ; dir = filepath.Dir(dir) {
		if isFolder(filepath.Join(dir, agency.DotDir)) && isFolder(filepath.Join(dir, agency.StateDir)) {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", agency.Errorf(agency.CodeInvalidPath, "%s is not in the worktree of a run: no folder above it holds %s", d.Dir, agency.StateDir).
				WithHint("agency report is for agents; to look from outside: agency ls")
		}
	}
}

// isFolder reports whether path is a folder, and not a link to one.
func isFolder(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && info.IsDir()
}

// checkAttempt refuses a process that an older attempt of the run left behind: its report would
// count for an agent that did not make it.
func checkAttempt(d *command.Deps, root string) error {
	mine, err := strconv.Atoi(d.Getenv("AGENCY_ATTEMPT"))
	if err != nil {
		return nil // a user, or a runner that hides its environment
	}
	data, err := file.ReadBeneath(root, agency.AttemptFile, 32)
	if err != nil {
		return nil // the first attempt
	}
	newest, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil || mine >= newest {
		return nil
	}
	return agency.Errorf(agency.CodeInvalidState, "this process belongs to attempt %d of the run, and attempt %d works on it now", mine, newest).
		WithHint("end this process; its reports no longer count")
}

// contract returns the contract for a status, or an error about missing flags.
func (o *reportOptions) contract(word agency.ReportedStatus, now time.Time) (*agency.Contract, error) {
	missing := func(flag, example string) error {
		summary := o.summary
		if blank(summary) {
			summary = "what you do, need or did"
		}
		hint := fmt.Sprintf("agency report %s --summary %s", word, shellQuote(summary))
		if example != "" {
			hint += fmt.Sprintf(" %s %s", flag, shellQuote(example))
		}
		return agency.Errorf(agency.CodeUsage, "%s needs %s", word, flag).WithHint("%s", hint)
	}
	switch {
	case word == agency.ReportedNeedsInput && !slices.ContainsFunc(o.questions, said):
		return nil, missing("--question", "what you need to know")
	case word == agency.ReportedBlocked && !slices.ContainsFunc(o.blockers, said):
		return nil, missing("--blocker", "what stops you")
	case word == agency.ReportedReadyForReview && blank(o.howToTest):
		return nil, missing("--how-to-test", "how to check the work")
	case blank(o.summary):
		return nil, missing("--summary", "")
	}
	if why := o.wrongQuiet(word); why != "" {
		return nil, agency.Errorf(agency.CodeUsage, "--quiet-for %s", why).
			WithHint("a time such as 90s, 20m or 2h: agency report working --summary %s --quiet-for 20m", shellQuote(o.summary))
	}
	c := agency.NewContract(now)
	c.Status, c.Summary, c.HowToTest = word, o.summary, o.howToTest
	c.Questions, c.Blockers, c.Risks = command.OrEmpty(o.questions), command.OrEmpty(o.blockers), command.OrEmpty(o.risks)
	return &c, nil
}

// wrongQuiet returns what is wrong with the time of --quiet-for; empty when nothing is.
func (o *reportOptions) wrongQuiet(word agency.ReportedStatus) string {
	switch {
	case o.quiet < 0:
		return fmt.Sprintf("is %s; it cannot be negative", duration.Text(o.quiet))
	case o.quiet > agency.MaxQuiet:
		return fmt.Sprintf("is %s, and 24h is the most", duration.Text(o.quiet))
	case o.quiet > 0 && word != agency.ReportedWorking:
		return fmt.Sprintf("goes with working, not with %s", word)
	}
	return ""
}

// checkBeside refuses flags of the contract for a status that is not in the contract.
func (o *reportOptions) checkBeside(word string) error {
	if len(o.questions) == 0 && len(o.blockers) == 0 && len(o.risks) == 0 && o.howToTest == "" && o.quiet == 0 {
		return nil
	}
	hint := `agency report needs_input --summary "what you need" --question "what you need to know"`
	switch agency.Report(word) {
	case agency.ReportsError:
		hint = `agency report blocked --summary "what happened" --blocker "what stops you"`
	case agency.ReportsComplete:
		hint = `agency report ready_for_review --summary "what you did" --how-to-test "how to check the work"`
	case agency.ReportsHelp, agency.ReportsStatus:
	}
	return agency.Errorf(agency.CodeUsage, "%s takes --summary alone", word).WithHint("to say more: %s", hint)
}

// writeContract writes a contract atomically to where the daemon reads it. It first checks the
// contract as the daemon will.
func writeContract(root string, c *agency.Contract) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(c); err != nil {
		return fmt.Errorf("encode the status: %w", err)
	}
	if _, err := contract.Parse(text.Bytes()); err != nil {
		return agency.Errorf(agency.CodeUsage, "the status cannot be written: %w", err).WithHint("say it in fewer words")
	}
	if err := file.WriteBeneath(root, agency.ContractFile, text.Bytes(), 0o644); err != nil {
		return cannotReport(root, agency.ContractFile, err)
	}
	return nil
}

func cannotReport(root, rel string, err error) error {
	path, code := filepath.Join(root, rel), agency.CodeInvalidPath
	if errors.Is(err, fs.ErrPermission) {
		code = agency.CodePermissionDenied
	}
	return agency.Errorf(code, "write %s: %w", path, command.RootCause(err)).
		WithHint("%s and what is in it must be plain folders and files that you may write", filepath.Join(root, agency.StateDir))
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

func said(s string) bool { return !blank(s) }

// shellQuote returns a text as one word for a shell.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
