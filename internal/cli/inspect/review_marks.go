package inspect

import (
	"context"
	"fmt"
	"io"
	"slices"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/plain"
)

// mark marks files as reviewed with their present content, or takes the marks back.
func (o *reviewOptions) mark(ctx context.Context, ref string) error {
	list, err := command.Call(ctx, o.Deps, api.DiffRun, api.DiffRunRequest{Run: ref, List: true})
	if err != nil {
		return err
	}
	req := api.MarkReviewedRequest{Run: string(list.RunID), Undo: len(o.unreviewed) > 0}
	for _, name := range slices.Concat(o.reviewed, o.unreviewed) {
		found := len(req.Files)
		for i := range list.List {
			if f := &list.List[i]; name == "all" || name == f.Path || name == plain.Visible(f.Path) {
				req.Files = append(req.Files, agency.ReviewedFile{Path: f.Path, Object: f.Object})
			}
		}
		if len(req.Files) == found {
			return notChanged(ref, name, list.List)
		}
	}
	resp, err := command.Call(ctx, o.Deps, api.MarkReviewed, req)
	if err != nil {
		return err
	}
	return o.Print(resp, func(w io.Writer) {
		files := command.Count(len(req.Files), "file")
		if req.Undo {
			_, _ = fmt.Fprintf(w, "%s not marked as reviewed any more\n", files)
		} else {
			_, _ = fmt.Fprintf(w, "%s marked as reviewed; a change takes the mark away\n", files)
		}
	})
}

// notChanged returns the error about a file that a run did not change.
func notChanged(ref, name string, list []agency.FileDiff) error {
	err := agency.Errorf(agency.CodeInvalidPath, "%s is not among the files that %s changed", plain.Visible(name), ref)
	paths := make([]string, len(list))
	for i := range list {
		paths[i] = plain.Visible(list[i].Path)
	}
	if near := plain.Nearest(name, paths); near != "" {
		return err.WithHint("did you mean %s?", near)
	}
	return err.WithHint("its files: agency review %s", plain.ShellWord(ref))
}
