package forge

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"agency"
	"agency/internal/killpoint"
	"agency/internal/plain"
)

// Push is a commit to push to a branch.
type Push struct {
	Branch  string // of the remote
	Commit  string
	Known   []agency.Push // what was pushed there before
	Rewrite bool          // the branch may lose commits that were pushed there before, and no others
	Options []string      // for the forge
	Ref     string        // pushed to instead of the branch, for forges that make pull requests of refs; empty for none
}

// Pushed is what a push did.
type Pushed struct {
	Created bool   // the remote did not have the branch
	Already bool   // the remote already had the commit, perhaps with others on top
	Was     string // the old commit of the branch; empty when it is new
	Said    string // what the remote wrote, safe to show
}

// Push pushes a commit to a branch, if that loses nothing that another client put there: the branch
// must be new, or an ancestor of the commit, or what agency itself pushed. The remote must still
// have what Push saw when the push arrives, and Push asks it afterwards whether it has the commit.
// It calls intent before the push.
//
// E_TARGET_MOVED: the branch has other commits. E_PUSH_REJECTED: the remote refuses the push.
// E_FORGE_AUTH: the remote does not accept the user. E_FORGE_FAILED: it cannot be reached.
// E_GIT_FAILED: git cannot look for files of git-lfs. E_WAIT_TIMEOUT: ctx ended first.
func (r *Remote) Push(ctx context.Context, p Push, intent func(created bool) error) (*Pushed, error) {
	was, err := r.At(ctx, p.Branch)
	if err != nil {
		return nil, err
	}
	result := &Pushed{Created: was == "", Was: was, Already: was == p.Commit}
	if was != "" && !p.Rewrite && !result.Already { // not a branch of a run: others may have built on the commit
		a, err := r.git(ctx, "merge-base", "--is-ancestor", "--end-of-options", p.Commit, was)
		if err != nil {
			return nil, err
		}
		result.Already = a.exit == 0
	}
	if result.Already && len(p.Options) == 0 {
		return result, nil
	}
	if p.Ref == "" {
		if err := r.fits(ctx, p, was); err != nil {
			return nil, err
		}
	}
	if err := r.checkLFS(ctx, p); err != nil {
		return nil, err
	}
	if err := intent(result.Created); err != nil {
		return nil, err
	}
	killpoint.At("push.intended")
	ref := "refs/heads/" + p.Branch
	args := []string{"push", "--porcelain", "--no-verify", "--no-signed", "--recurse-submodules=no"}
	for _, option := range p.Options {
		args = append(args, "--push-option="+option)
	}
	if p.Ref != "" {
		args = append(args, "--", r.url, p.Commit+":"+p.Ref)
	} else {
		args = append(args, "--atomic", "--force-with-lease="+ref+":"+was, "--", r.url, p.Commit+":"+ref)
	}
	a, err := r.git(ctx, args...)
	killpoint.At("push.pushed")
	result.Said = said(remoteWords(a.err))
	if p.Ref != "" && err == nil && a.exit == 0 {
		return result, nil
	}
	return result, r.verify(ctx, p, was, a, err)
}

// fits refuses a push that would remove what another client put on the branch.
func (r *Remote) fits(ctx context.Context, p Push, was string) error {
	own := func(k agency.Push) bool { return k.Commit == was }
	created := func(k agency.Push) bool { return k.Created }
	if was == "" || was == p.Commit || p.Rewrite && slices.ContainsFunc(p.Known, own) && slices.ContainsFunc(p.Known, created) {
		return nil
	}
	a, err := r.git(ctx, "merge-base", "--is-ancestor", "--end-of-options", was, p.Commit)
	if err != nil || a.exit == 0 {
		return err
	}
	return r.moved(p, was)
}

func (r *Remote) moved(p Push, now string) error {
	return agency.Errorf(agency.CodeTargetMoved, "%s of %s is at %.12s, which %.12s does not contain, so nothing was pushed", plain.Visible(p.Branch), r.Shown(), now, p.Commit).
		WithDetail("remote_commit", now).WithHint("fetch it and merge it first: git fetch %s %s", plain.ShellWord(plain.SafeURL(r.url)), plain.ShellWord(p.Branch))
}

// checkLFS refuses a commit with files that git-lfs keeps elsewhere: only its pre-push hook would
// upload them, and no hook runs.
func (r *Remote) checkLFS(ctx context.Context, p Push) error {
	a, err := r.git(ctx, "grep", "-q", "-e", "filter=lfs", p.Commit, "--", ":(glob)**/.gitattributes")
	switch {
	case err != nil || a.exit == 1: // no match
		return err
	case a.exit != 0:
		return agency.Errorf(agency.CodeGitFailed, "git cannot look for files of git-lfs in %.12s: %s", p.Commit, cmp.Or(said(a.err), "it was killed")).WithHint("nothing was pushed; try again")
	}
	return agency.Errorf(agency.CodeInvalidState, "git-lfs keeps files of %.12s apart, and a hook uploads them; agency runs no hook", p.Commit).
		WithHint("push it by hand, in the repository: git push %s %s:refs/heads/%s", plain.ShellWord(plain.SafeURL(r.url)), p.Commit, plain.ShellWord(p.Branch))
}

// lookLimit is how long a remote may take to report its branch after a failed push.
const lookLimit = 30 * time.Second

// verify returns nil when the remote has the commit, whatever git reported about the push.
func (r *Remote) verify(ctx context.Context, p Push, was string, a answer, failed error) error {
	if failed != nil && !late(failed) {
		return failed
	}
	look, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookLimit)
	defer cancel()
	now, err := r.At(look, p.Branch)
	switch {
	case err == nil && now == p.Commit && p.Ref == "":
		return nil
	case failed != nil && err == nil:
		return agency.Errorf(agency.CodeWaitTimeout, "%s took too long, and does not have %.12s: %w", r.Shown(), p.Commit, failed).WithHint("try again, with a longer --timeout")
	case failed != nil:
		return agency.Errorf(agency.CodeWaitTimeout, "%s took too long, and agency does not know whether it has %.12s: %w", r.Shown(), p.Commit, failed).
			WithHint("see: git ls-remote %s %s", plain.ShellWord(plain.SafeURL(r.url)), plain.ShellWord(p.Branch))
	case err == nil && now != was && p.Ref == "":
		return r.moved(p, now)
	case a.exit == 0 && err == nil:
		return agency.Errorf(agency.CodePushRejected, "git pushed %.12s to %s, and %s does not have it", p.Commit, r.Shown(), plain.Visible(p.Branch)).WithHint("a hook of the remote may have removed it: git ls-remote %s %s",
			plain.ShellWord(plain.SafeURL(r.url)), plain.ShellWord(p.Branch))
	}
	if reason := rejection(a.out); reason != "" {
		words := said(remoteWords(a.err))
		if words != "" {
			reason += ": " + words
		}
		return agency.Errorf(agency.CodePushRejected, "%s does not take %s: %s", r.Shown(), plain.Visible(p.Branch), reason).
			WithHint("its rules decide that; another branch: agency push --branch NAME")
	}
	return r.failed("push to", a)
}

// rejection returns why the remote rejects a ref, from the output of push --porcelain; empty when
// the output names no ref.
func rejection(out string) string {
	for line := range strings.Lines(out) {
		if rest, ok := strings.CutPrefix(line, "!\t"); ok {
			_, summary, _ := strings.Cut(rest, "\t")
			return clip(strings.TrimSpace(plain.Visible(summary)))
		}
	}
	return ""
}

// remoteWords returns the lines of the remote in the output of git.
func remoteWords(text string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.ReplaceAll(text, "\r", "\n")) {
		if words, ok := strings.CutPrefix(line, "remote: "); ok {
			b.WriteString(words)
		}
	}
	return b.String()
}
