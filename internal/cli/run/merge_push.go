package run

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/plain"
)

// targetPush is the push of merge --push.
type targetPush struct {
	plan   api.PlanPushResponse
	result *pushResult
}

// print prints where the target is now; nothing when there was no push.
func (t *targetPush) print(w io.Writer) {
	if t != nil {
		printPush(w, &t.plan, t.result)
	}
}

// pushTarget pushes the target of the newest of some landings, if --push is given. Its error tells
// the user that the work has landed anyway.
func (o *mergeOptions) pushTarget(ctx context.Context, landings ...api.MergeRunResponse) (*targetPush, error) {
	if !o.push || len(landings) == 0 {
		return nil, nil //nolint:nilnil // nothing is to be pushed
	}
	ctx, cancel := o.bounded(ctx)
	defer cancel()
	last := slices.MaxFunc(landings, func(a, b api.MergeRunResponse) int { return cmp.Compare(a.Landing.Seq, b.Landing.Seq) })
	l := &last.Landing
	plan, err := command.Call(ctx, o.Deps, api.PlanPush, api.PlanPushRequest{Landing: l.ID, Remote: o.target()})
	if err == nil {
		t := &targetPush{plan: plan}
		if t.result, err = o.pushPlan(ctx, &plan); err == nil {
			return t, nil
		}
	}
	err = o.inTime(ctx, err)
	e := agency.AsError(err)
	failed := agency.Errorf(e.Code, "%s landed in %s as %.12s, and is not pushed: %w", last.Run.Ref(), l.Target, l.Candidate, err).WithDetail("landing", l.ID)
	// The command to run once the cause is fixed, as the user gave it.
	again := o.command()
	remote, target := plain.ShellWord(plain.SafeURL(plan.Place.Remote)), plain.ShellWord(l.Target)
	undo := "agency merge --undo " + string(l.ID)
	switch {
	case plan.Place.Remote == "" && o.remote == "":
		return nil, failed.WithHint("name the remote to push to: %s --remote REMOTE; or take it back: %s", again, undo)
	case plan.Place.Remote == "":
		return nil, failed.WithHint("%s; then push it: %s", cmp.Or(e.Hint, "name another remote"), again)
	case e.Code == agency.CodeTargetMoved && len(landings) == 1 && plan.Commit == l.Candidate && l.Worktree == "":
		return nil, failed.WithHint("take it back, fetch, and land it again: %s; git -C %s fetch %s %s:%s; %s", undo, plain.ShellWord(last.Run.Repo), remote, target, target, again)
	case e.Code == agency.CodeTargetMoved && len(landings) == 1 && plan.Commit == l.Candidate:
		return nil, failed.WithHint("take it back, fetch, and land it again: %s; git -C %s pull %s %s; %s", undo, plain.ShellWord(l.Worktree), remote, target, again)
	case e.Code == agency.CodeTargetMoved:
		return nil, failed.WithHint("merge into %s what %s has, then push it: %s", target, remote, again)
	default:
		return nil, failed.WithHint("%s; then push it: %s", cmp.Or(e.Hint, "see to that"), again)
	}
}

// command returns the command line that lands and pushes as this one does.
func (o *mergeOptions) command() string {
	words := []string{"agency merge", plain.ShellWord(o.req.Run)}
	for _, flag := range []struct{ name, value string }{{"--into", o.req.Into}, {"--method", o.req.Method}, {"--message", o.req.Message}} {
		if flag.value != "" {
			words = append(words, flag.name, plain.ShellWord(flag.value))
		}
	}
	for _, flag := range []struct {
		name  string
		given bool
	}{{"--include-uncommitted", o.req.IncludeUncommitted}, {"--no-verify", o.req.NoVerify}, {"--approve", o.req.Approve}} {
		if flag.given {
			words = append(words, flag.name)
		}
	}
	words = append(words, "--push")
	if o.remote != "" {
		words = append(words, "--remote", plain.ShellWord(o.remote))
	}
	return strings.Join(words, " ")
}

// answer returns what --json prints for a landing, or for those of a session.
func (t *targetPush) answer(landed any) any {
	if t == nil {
		return landed
	}
	switch landed := landed.(type) {
	case api.MergeRunResponse:
		return struct {
			api.MergeRunResponse

			Push *pushResult `json:"push"`
		}{landed, t.result}
	case api.MergeSessionResponse:
		return struct {
			api.MergeSessionResponse

			Push *pushResult `json:"push"`
		}{landed, t.result}
	default:
		panic(fmt.Sprintf("%T is not a landing", landed))
	}
}
