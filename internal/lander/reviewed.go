package lander

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"agency"
	"agency/internal/plain"
)

// mostPath is how many bytes a path may have.
const mostPath = 4096

var objectName = regexp.MustCompile(`^(?:[0-9a-f]{40}|[0-9a-f]{64})$`)

// Mark records that the user has reviewed files of a run's work, each with its content, or takes
// the marks back.
func (cs *Comments) Mark(ctx context.Context, ref string, files []agency.ReviewedFile, reviewed bool) (*agency.Run, error) {
	if len(files) == 0 || len(files) > agency.ReviewedLimit {
		return nil, agency.Errorf(agency.CodeUsage, "%d files are given to mark, and it takes 1 to %d", len(files), agency.ReviewedLimit)
	}
	for _, f := range files {
		if f.Path == "" || len(f.Path) > mostPath || strings.ContainsRune(f.Path, 0) {
			return nil, agency.Errorf(agency.CodeInvalidPath, "%q is not the path of a file", plain.Clip(f.Path))
		}
		if !objectName.MatchString(f.Object) {
			return nil, agency.Errorf(agency.CodeUsage, "%q is not git's name of a content", plain.Clip(f.Object)).WithHint("run.diff with list has it, as object")
		}
	}
	r, err := cs.Runs.Resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	return r, cs.Store.MarkReviewed(ctx, r.ID, files, reviewed)
}

// Reviewed marks the files of a list that the user has reviewed with their present content.
func (cs *Comments) Reviewed(ctx context.Context, run agency.RunID, list []agency.FileDiff) error {
	marks, err := cs.Store.Reviewed(ctx, run)
	if err != nil || len(marks) == 0 {
		return err
	}
	for i := range list {
		f := &list[i]
		f.Reviewed = slices.Contains(marks, agency.ReviewedFile{Path: f.Path, Object: f.Object})
	}
	return nil
}

// reviewed returns the paths of a run's files that the user has reviewed with their present
// content.
func (pl *planner) reviewed(ctx context.Context, repo agency.Repo, p *plan, run agency.RunID) ([]string, error) {
	paths := []string{}
	marks, err := pl.Store.Reviewed(ctx, run)
	if err != nil || len(marks) == 0 {
		return paths, err
	}
	begin, err := pl.begin(ctx, repo, p)
	if err != nil {
		return paths, err
	}
	changed, err := pl.Git.Changed(ctx, repo, begin, p.source.sealed)
	for _, f := range changed {
		_, object, there := strings.Cut(f.To, " ")
		if slices.ContainsFunc(marks, func(m agency.ReviewedFile) bool {
			return m.Path == f.Path && (m.Object == object || !there && strings.Trim(m.Object, "0") == "")
		}) {
			paths = append(paths, f.Path)
		}
	}
	return paths, err
}
