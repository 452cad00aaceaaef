package forge

import (
	"regexp"
	"strconv"
	"strings"

	"agency"
	"agency/internal/plain"
)

// ByPush turns a push into one that makes a pull request, as GitLab and Gitea support it: by
// options, and on Gitea by a ref instead of the branch.
func (s Site) ByPush(push *Push, pr *NewPR) {
	line := func(text string) string { return strings.Join(strings.Fields(text), " ") } // an option is one line
	if s.Kind == agency.ForgeGitea {
		push.Ref = "refs/for/" + pr.Base
		title := line(pr.Title)
		if pr.Draft {
			title = "WIP: " + title
		}
		push.Options = []string{"topic=" + pr.Branch, "title=" + title, "description=" + line(pr.Body)}
		return
	}
	push.Options = []string{
		"merge_request.create", "merge_request.target=" + pr.Base, "merge_request.title=" + line(pr.Title), "merge_request.description=" + line(pr.Body),
	}
	if pr.Draft {
		push.Options = append(push.Options, "merge_request.draft")
	}
}

var made = regexp.MustCompile(`https?://[^\s;]+/(?:merge_requests|pulls)/([0-9]{1,9})\b`)

// Made returns the number and the URL of the pull request that a forge names in its answer to a
// push; 0 for none.
func Made(said string) (number int, url string) {
	found := made.FindStringSubmatch(said)
	if found == nil {
		return 0, ""
	}
	number, _ = strconv.Atoi(found[1])
	return number, plain.SafeURL(found[0])
}
