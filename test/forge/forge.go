// Package forge is a forge for tests: the parts of the interfaces of GitHub and GitLab that agency
// uses, with a state in a file. Main is a gh, a glab and a tool that plays the other users.
package forge

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

// PR is a pull request of the forge.
type PR struct {
	Number  int    `json:"number"`
	State   string `json:"state"` // OPEN, MERGED or CLOSED
	Draft   bool   `json:"draft"`
	Fork    bool   `json:"fork"`
	Head    string `json:"head"`
	Base    string `json:"base"`
	Commit  string `json:"commit"` // of the head, as long as it is open
	Title   string `json:"title"`
	Body    string `json:"body"`
	Checks  string `json:"checks"`
	Review  string `json:"review"`
	Comment string `json:"comment"` // of a reviewer, on line 3 of a.txt
}

// State is all that the forge knows.
type State struct {
	PRs []PR `json:"prs"`
	// Fail is what goes wrong next: "login", "moved", "words" or "kill", which kills the client once
	// the pull request is made.
	Fail string `json:"fail"`

	repo string // a bare repository
	save func()
}

// Open reads the state in a file; one that does not exist is empty. Every change is written there.
func Open(path, repo string) (*State, error) {
	s := &State{}
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, s)
	}
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	s.repo = repo
	s.save = func() {
		data, _ := json.MarshalIndent(s, "", "  ")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			panic(err)
		}
	}
	return s, nil
}

func (s *State) find(number int) *PR {
	for i := range s.PRs {
		if s.PRs[i].Number == number {
			return &s.PRs[i]
		}
	}
	return nil
}

// follow moves the heads of open pull requests to where their branches are.
func (s *State) follow() {
	for i := range s.PRs {
		out, err := exec.Command("git", "--git-dir", s.repo, "rev-parse", "refs/heads/"+s.PRs[i].Head).Output()
		if pr := &s.PRs[i]; err == nil && pr.State == "OPEN" && !pr.Fork {
			pr.Commit = strings.TrimSpace(string(out))
		}
	}
}

func message(status int, text string) (int, any) {
	return status, map[string]any{"message": text}
}

// Serve answers a request of either interface.
func (s *State) Serve(method, path string, body []byte) (status int, answer any) {
	s.follow()
	defer s.save()
	if s.Fail == "login" {
		return message(http.StatusUnauthorized, "Bad credentials")
	}
	var in map[string]any
	_ = json.Unmarshal(body, &in)
	path, _, _ = strings.Cut(strings.TrimPrefix(path, "/"), "?")
	parts := strings.Split(path, "/")
	number := 0
	for _, part := range parts {
		if n, err := strconv.Atoi(part); err == nil {
			number = n
		}
	}
	pr := s.find(number)
	switch {
	case path == "graphql":
		return s.graphql(in)
	case method == http.MethodPost && (path == "repos/me/app/pulls" || path == "projects/me%2Fapp/merge_requests"):
		return s.create(in)
	case method == http.MethodGet && path == "projects/me%2Fapp/merge_requests":
		list := []any{}
		for i := range slices.Backward(s.PRs) {
			list = append(list, s.PRs[i].gitLab())
		}
		return http.StatusOK, list
	case pr == nil:
		return message(http.StatusNotFound, "Not Found")
	case method == http.MethodGet && strings.HasSuffix(path, "/approvals"):
		return http.StatusOK, map[string]any{"approved": pr.Review == "APPROVED", "approved_by": []any{"rev"}, "approvals_left": 0}
	case method == http.MethodGet && strings.HasSuffix(path, "/discussions"):
		return http.StatusOK, []any{map[string]any{"notes": []any{
			map[string]any{"body": pr.Comment, "author": map[string]any{"username": "rev"}, "position": map[string]any{"new_path": "a.txt", "new_line": 3}},
			map[string]any{"body": "changed the title", "system": true},
		}}}
	case method == http.MethodGet:
		return http.StatusOK, pr.gitLab()
	case strings.HasSuffix(path, "/merge"):
		if in["sha"] != pr.Commit || s.Fail == "moved" {
			return message(http.StatusConflict, "Head branch was modified. Review and try the merge again.")
		}
		pr.State = "MERGED"
	case in["state"] == "closed" || in["state_event"] == "close":
		pr.State = "CLOSED"
	case in["title"] != nil:
		pr.title(in["title"].(string))
	}
	return http.StatusOK, map[string]any{"number": pr.Number}
}

func (p *PR) title(title string) {
	p.Title = strings.TrimPrefix(title, "Draft: ")
	p.Draft = p.Title != title
}

func (s *State) create(in map[string]any) (status int, answer any) {
	text := func(keys ...string) string {
		for _, key := range keys {
			if value, ok := in[key].(string); ok {
				return value
			}
		}
		return ""
	}
	pr := PR{Number: len(s.PRs) + 1, State: "OPEN", Head: text("head", "source_branch"), Base: text("base", "target_branch"), Body: text("body", "description")}
	pr.title(text("title"))
	if draft, ok := in["draft"].(bool); ok {
		pr.Draft = draft
	}
	if s.Fail == "words" {
		return http.StatusUnprocessableEntity, map[string]any{"message": "Validation \x1b[31mFailed", "errors": []any{map[string]any{"message": "no commits"}}}
	}
	if slices.ContainsFunc(s.PRs, func(p PR) bool { return p.Head == pr.Head && p.State == "OPEN" && !p.Fork }) {
		return http.StatusUnprocessableEntity, map[string]any{"message": "a pull request already exists"}
	}
	s.PRs = append(s.PRs, pr)
	s.follow()
	return http.StatusCreated, map[string]any{"number": pr.Number}
}

func (p *PR) gitLab() any {
	state := map[string]string{"OPEN": "opened", "MERGED": "merged", "CLOSED": "closed"}[p.State]
	source := 1
	if p.Fork {
		source = 2
	}
	m := map[string]any{
		"iid": p.Number, "web_url": fmt.Sprintf("https://gitlab.com/me/app/-/merge_requests/%d", p.Number), "state": state, "draft": p.Draft, "title": p.Title,
		"description": p.Body, "sha": p.Commit, "source_branch": p.Head, "target_branch": p.Base, "source_project_id": source, "target_project_id": 1,
	}
	if p.Draft {
		m["title"] = "Draft: " + p.Title
	}
	if p.Checks != "" {
		m["head_pipeline"] = map[string]any{"status": map[string]string{"SUCCESS": "success", "FAILURE": "failed"}[p.Checks]}
	}
	return m
}

func (p *PR) gitHub() any {
	var rollup any
	if p.Checks != "" {
		rollup = map[string]any{"state": p.Checks}
	}
	var review any
	if p.Review != "" {
		review = p.Review
	}
	return map[string]any{
		"id": fmt.Sprintf("PR_%d", p.Number), "number": p.Number, "url": fmt.Sprintf("https://github.com/me/app/pull/%d", p.Number), "state": p.State,
		"isDraft": p.Draft, "isCrossRepository": p.Fork, "body": p.Body, "headRefOid": p.Commit, "headRefName": p.Head, "baseRefName": p.Base,
		"reviewDecision": review, "commits": map[string]any{"nodes": []any{map[string]any{"commit": map[string]any{"statusCheckRollup": rollup}}}},
	}
}

func (s *State) graphql(in map[string]any) (status int, answer any) {
	query, _ := in["query"].(string)
	variables, _ := in["variables"].(map[string]any)
	repository := map[string]any{}
	switch {
	case strings.Contains(query, "pullRequests(headRefName"):
		nodes := []any{}
		for i := range slices.Backward(s.PRs) {
			if s.PRs[i].Head == variables["branch"] {
				nodes = append(nodes, s.PRs[i].gitHub())
			}
		}
		repository["pullRequests"] = map[string]any{"nodes": nodes}
	case strings.Contains(query, "reviewThreads"):
		pr := s.find(int(variables["number"].(float64)))
		thread := func(resolved bool, body string) any {
			note := map[string]any{"author": map[string]any{"login": "rev"}, "body": body}
			return map[string]any{"isResolved": resolved, "path": "a.txt", "line": 3, "comments": map[string]any{"nodes": []any{note}}}
		}
		page := map[string]any{"hasNextPage": false, "hasPreviousPage": false}
		threads := []any{thread(false, pr.Comment), thread(true, "settled")}
		reviews := []any{map[string]any{"author": nil, "body": "please mend it"}}
		repository["pullRequest"] = map[string]any{
			"reviewThreads": map[string]any{"pageInfo": page, "nodes": threads}, "reviews": map[string]any{"pageInfo": page, "nodes": reviews},
			"comments": map[string]any{"pageInfo": page, "nodes": []any{}},
		}
	case strings.Contains(query, "markPullRequestReadyForReview"):
		number, _ := strconv.Atoi(strings.TrimPrefix(variables["id"].(string), "PR_"))
		s.find(number).Draft = false
	default:
		return message(http.StatusBadRequest, "unknown query")
	}
	return http.StatusOK, map[string]any{"data": map[string]any{"repository": repository}}
}
