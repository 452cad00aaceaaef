package forge

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"agency"
	"agency/internal/killpoint"
)

// gitLab is a project on GitLab, where a pull request is a merge request.
type gitLab struct {
	client

	project string // the beginning of the paths of its requests
}

type mergeRequest struct {
	IID             int    `json:"iid"`
	WebURL          string `json:"web_url"`
	State           string `json:"state"`
	Draft           bool   `json:"draft"`
	Title           string `json:"title"`
	Description     string `json:"description"`
	SHA             string `json:"sha"`
	SourceBranch    string `json:"source_branch"`
	TargetBranch    string `json:"target_branch"`
	SourceProjectID int    `json:"source_project_id"`
	TargetProjectID int    `json:"target_project_id"`
	HeadPipeline    *struct {
		Status string `json:"status"`
	} `json:"head_pipeline"`
}

func (g *gitLab) Find(ctx context.Context, branch string) ([]PR, error) {
	var list []mergeRequest
	query := url.Values{"source_branch": {branch}, "state": {"all"}, "order_by": {"created_at"}, "sort": {"desc"}, "per_page": {"50"}}
	if err := g.ask(ctx, "GET", g.project+"/merge_requests?"+query.Encode(), nil, &list); err != nil {
		return nil, err
	}
	prs := []PR{}
	for i := range list {
		if list[i].SourceProjectID == list[i].TargetProjectID {
			prs = append(prs, list[i].pr())
		}
	}
	return prs, nil
}

func (m *mergeRequest) pr() PR {
	pr := PR{Body: m.Description, PullRequest: agency.PullRequest{
		Forge: agency.ForgeGitLab, Number: m.IID, URL: m.WebURL, State: agency.PROpen, Branch: m.SourceBranch, Base: m.TargetBranch, Commit: m.SHA,
	}}
	switch {
	case m.State == "merged":
		pr.State = agency.PRMerged
	case m.State == "closed":
		pr.State = agency.PRClosed
	case m.Draft:
		pr.State = agency.PRDraft
	}
	if m.HeadPipeline != nil {
		switch m.HeadPipeline.Status {
		case "success":
			pr.Checks = agency.ChecksPassing
		case "failed", "canceled":
			pr.Checks = agency.ChecksFailing
		case "skipped":
		default:
			pr.Checks = agency.ChecksPending
		}
	}
	return pr
}

func (g *gitLab) path(pr *PR, rest string) string {
	return fmt.Sprintf("%s/merge_requests/%d%s", g.project, pr.Number, rest)
}

func (g *gitLab) Look(ctx context.Context, pr *PR) error {
	var m mergeRequest
	if err := g.ask(ctx, "GET", g.path(pr, ""), nil, &m); err != nil {
		return err
	}
	*pr = m.pr()
	var approvals struct {
		Approved   bool  `json:"approved"`
		ApprovedBy []any `json:"approved_by"`
		Left       int   `json:"approvals_left"`
	}
	if err := g.ask(ctx, "GET", g.path(pr, "/approvals"), nil, &approvals); err != nil {
		return err
	}
	switch {
	case approvals.Left > 0:
		pr.Review = agency.ReviewRequired
	case approvals.Approved && len(approvals.ApprovedBy) > 0:
		pr.Review = agency.ReviewApproved
	}
	return nil
}

// draftTitle is the beginning of the title of a draft.
const draftTitle = "Draft: "

func (g *gitLab) Create(ctx context.Context, pr NewPR) error {
	title := pr.Title
	if pr.Draft {
		title = draftTitle + title
	}
	err := g.ask(ctx, "POST", g.project+"/merge_requests",
		map[string]any{"source_branch": pr.Branch, "target_branch": pr.Base, "title": title, "description": pr.Body}, nil)
	killpoint.At("pr.made")
	return err
}

func (g *gitLab) Ready(ctx context.Context, pr *PR) error {
	var m mergeRequest
	if err := g.ask(ctx, "GET", g.path(pr, ""), nil, &m); err != nil {
		return err
	}
	return g.ask(ctx, "PUT", g.path(pr, ""), map[string]any{"title": strings.TrimPrefix(m.Title, draftTitle)}, nil)
}

func (g *gitLab) Close(ctx context.Context, pr *PR) error {
	return g.ask(ctx, "PUT", g.path(pr, ""), map[string]any{"state_event": "close"}, nil)
}

// Merge lets the project decide whether the commits are rebased: for one merge request, GitLab
// offers only the choice whether they are squashed.
func (g *gitLab) Merge(ctx context.Context, pr *PR, method agency.LandingMethod, commit string) error {
	err := g.ask(ctx, "PUT", g.path(pr, "/merge"), map[string]any{"sha": commit, "squash": method == agency.LandSquash}, nil)
	if err != nil && strings.Contains(err.Error(), "409") {
		return headMoved(pr, commit, err)
	}
	return err
}

func (g *gitLab) Comments(ctx context.Context, pr *PR) (comments []Comment, more bool, err error) {
	const most = 100
	var discussions []struct {
		Notes []struct {
			Body     string `json:"body"`
			System   bool   `json:"system"`
			Resolved bool   `json:"resolved"`
			Author   struct {
				Username string `json:"username"`
			} `json:"author"`
			Position *struct {
				NewPath string `json:"new_path"`
				NewLine int    `json:"new_line"`
			} `json:"position"`
		} `json:"notes"`
	}
	if err := g.ask(ctx, "GET", g.path(pr, fmt.Sprintf("/discussions?per_page=%d", most)), nil, &discussions); err != nil {
		return nil, false, err
	}
	for _, d := range discussions {
		for _, n := range d.Notes {
			if n.System || n.Resolved || strings.TrimSpace(n.Body) == "" {
				continue
			}
			c := Comment{Author: n.Author.Username, Body: n.Body}
			if n.Position != nil {
				c.Path, c.Line = n.Position.NewPath, n.Position.NewLine
			}
			comments = append(comments, c)
		}
	}
	return comments, len(discussions) == most, nil
}
