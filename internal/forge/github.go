package forge

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"agency"
	"agency/internal/killpoint"
	"agency/internal/plain"
)

// gitHub is a repository on GitHub.
type gitHub struct {
	client

	owner, name string
}

// fields are what agency reads of a pull request.
const fields = `id number url state isDraft isCrossRepository body headRefOid headRefName baseRefName reviewDecision
  commits(last: 1) { nodes { commit { statusCheckRollup { state } } } }`

type gitHubPR struct {
	ID                string
	Number            int
	URL               string
	State             string
	IsDraft           bool
	IsCrossRepository bool
	Body              string
	HeadRefOid        string
	HeadRefName       string
	BaseRefName       string
	ReviewDecision    string
	Commits           struct {
		Nodes []struct {
			Commit struct{ StatusCheckRollup *struct{ State string } }
		}
	}
}

// query runs a query about the repository on the GraphQL interface.
func (g *gitHub) query(ctx context.Context, what string, variables map[string]any, to any) error {
	variables["owner"], variables["name"] = g.owner, g.name
	declared := "$owner: String!, $name: String!"
	if _, ok := variables["branch"]; ok {
		declared += ", $branch: String!"
	} else {
		declared += ", $number: Int!"
	}
	query := "query(" + declared + ") { repository(owner: $owner, name: $name) { " + what + " } }"
	return g.ask(ctx, "POST", "graphql", map[string]any{"query": query, "variables": variables}, to)
}

func (g *gitHub) Find(ctx context.Context, branch string) ([]PR, error) {
	var answer struct {
		Data struct {
			Repository *struct {
				PullRequests struct{ Nodes []gitHubPR }
			}
		}
	}
	what := "pullRequests(headRefName: $branch, first: 50, orderBy: {field: CREATED_AT, direction: DESC}) { nodes { " + fields + " } }"
	if err := g.query(ctx, what, map[string]any{"branch": branch}, &answer); err != nil {
		return nil, err
	}
	if answer.Data.Repository == nil {
		return nil, g.missing()
	}
	prs := []PR{}
	for i := range answer.Data.Repository.PullRequests.Nodes {
		if n := &answer.Data.Repository.PullRequests.Nodes[i]; !n.IsCrossRepository {
			prs = append(prs, n.pr())
		}
	}
	return prs, nil
}

func (g *gitHub) missing() error {
	return agency.Errorf(agency.CodeForgeFailed, "%s shows no repository %s/%s to gh", g.host, g.owner, g.name).WithHint("gh auth status")
}

func (n *gitHubPR) pr() PR {
	pr := PR{Body: n.Body, node: n.ID, PullRequest: agency.PullRequest{
		Forge: agency.ForgeGitHub, Number: n.Number, URL: n.URL, State: agency.PROpen, Branch: n.HeadRefName, Base: n.BaseRefName, Commit: n.HeadRefOid,
	}}
	switch {
	case n.State == "MERGED":
		pr.State = agency.PRMerged
	case n.State == "CLOSED":
		pr.State = agency.PRClosed
	case n.IsDraft:
		pr.State = agency.PRDraft
	}
	switch n.ReviewDecision {
	case "APPROVED":
		pr.Review = agency.ReviewApproved
	case "CHANGES_REQUESTED":
		pr.Review = agency.ReviewChanges
	case "REVIEW_REQUIRED":
		pr.Review = agency.ReviewRequired
	}
	for _, c := range n.Commits.Nodes {
		if c.Commit.StatusCheckRollup == nil {
			continue
		}
		switch c.Commit.StatusCheckRollup.State {
		case "SUCCESS":
			pr.Checks = agency.ChecksPassing
		case "FAILURE", "ERROR":
			pr.Checks = agency.ChecksFailing
		default:
			pr.Checks = agency.ChecksPending
		}
	}
	return pr
}

// Look has nothing to add: Find returns all.
func (g *gitHub) Look(context.Context, *PR) error { return nil }

func (g *gitHub) path(format string, args ...any) string {
	return "repos/" + g.owner + "/" + g.name + fmt.Sprintf(format, args...)
}

func (g *gitHub) Create(ctx context.Context, pr NewPR) error {
	err := g.ask(ctx, "POST", g.path("/pulls"), map[string]any{"head": pr.Branch, "base": pr.Base, "title": pr.Title, "body": pr.Body, "draft": pr.Draft}, nil)
	killpoint.At("pr.made")
	return err
}

func (g *gitHub) Ready(ctx context.Context, pr *PR) error {
	const mutation = "mutation($id: ID!) { markPullRequestReadyForReview(input: {pullRequestId: $id}) { clientMutationId } }"
	return g.ask(ctx, "POST", "graphql", map[string]any{"query": mutation, "variables": map[string]any{"id": pr.node}}, nil)
}

func (g *gitHub) Close(ctx context.Context, pr *PR) error {
	return g.ask(ctx, "PATCH", g.path("/pulls/%d", pr.Number), map[string]any{"state": "closed"}, nil)
}

func (g *gitHub) Merge(ctx context.Context, pr *PR, method agency.LandingMethod, commit string) error {
	how := string(method)
	if method == agency.LandFF {
		how = string(agency.LandRebase) // GitHub has no method that keeps the commits as they are
	}
	err := g.ask(ctx, "PUT", g.path("/pulls/%d/merge", pr.Number), map[string]any{"sha": commit, "merge_method": how}, nil)
	if err != nil && strings.Contains(err.Error(), "HTTP 409") {
		return headMoved(pr, commit, err)
	}
	return err
}

func headMoved(pr *PR, commit string, err error) error {
	return agency.Errorf(agency.CodeSourceMoved, "%s of #%d is not at %.12s any more: %s", plain.Visible(pr.Branch), pr.Number, commit, err.Error()).
		WithHint("look at what was pushed: %s", plain.SafeURL(pr.URL))
}

func (g *gitHub) Comments(ctx context.Context, pr *PR) (comments []Comment, more bool, err error) {
	type page struct{ HasNextPage, HasPreviousPage bool }
	var answer struct {
		Data struct {
			Repository *struct {
				PullRequest *struct {
					ReviewThreads struct {
						PageInfo page
						Nodes    []struct {
							IsResolved bool
							Path       string
							Line       int
							Comments   struct{ Nodes []gitHubNote }
						}
					}
					Reviews, Comments struct {
						PageInfo page
						Nodes    []gitHubNote
					}
				}
			}
		}
	}
	const what = `pullRequest(number: $number) {
  reviewThreads(first: 100) { pageInfo { hasNextPage } nodes { isResolved path line comments(first: 50) { nodes { author { login } body } } } }
  reviews(last: 100) { pageInfo { hasPreviousPage } nodes { author { login } body } }
  comments(last: 100) { pageInfo { hasPreviousPage } nodes { author { login } body } } }`
	if err := g.query(ctx, what, map[string]any{"number": pr.Number}, &answer); err != nil {
		return nil, false, err
	}
	if answer.Data.Repository == nil || answer.Data.Repository.PullRequest == nil {
		return nil, false, g.missing()
	}
	found := answer.Data.Repository.PullRequest
	for _, n := range slices.Concat(found.Comments.Nodes, found.Reviews.Nodes) {
		comments = n.addTo(comments, "", 0)
	}
	for _, thread := range found.ReviewThreads.Nodes {
		for i := range thread.Comments.Nodes {
			if !thread.IsResolved {
				comments = thread.Comments.Nodes[i].addTo(comments, thread.Path, thread.Line)
			}
		}
	}
	more = found.ReviewThreads.PageInfo.HasNextPage || found.Reviews.PageInfo.HasPreviousPage || found.Comments.PageInfo.HasPreviousPage
	return comments, more, nil
}

// gitHubNote is a comment in GitHub's form.
type gitHubNote struct {
	Author *struct{ Login string }
	Body   string
}

// addTo appends the comment on a place to the others, unless it is empty.
func (n *gitHubNote) addTo(comments []Comment, path string, line int) []Comment {
	if strings.TrimSpace(n.Body) == "" {
		return comments
	}
	c := Comment{Path: path, Line: line, Body: n.Body}
	if n.Author != nil {
		c.Author = n.Author.Login
	}
	return append(comments, c)
}
