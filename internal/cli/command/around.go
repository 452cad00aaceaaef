package command

import (
	"context"

	"agency"
	"agency/internal/api"
)

// ListAround asks for the runs of the repository around req.Dir, or of all repositories outside of
// one.
func ListAround(ctx context.Context, client *api.Client, req api.ListRunsRequest) (api.ListRunsResponse, error) {
	return around(req, func(req api.ListRunsRequest) (api.ListRunsResponse, error) {
		return api.Call(ctx, client, api.ListRuns, req)
	})
}

// ListTextAround is ListAround for the envelope as it is printed.
func ListTextAround(ctx context.Context, client *api.Client, req api.ListRunsRequest) ([]byte, error) {
	return around(req, func(req api.ListRunsRequest) ([]byte, error) {
		return api.CallText(ctx, client, api.ListRuns, req)
	})
}

// around asks again without a repository when there is none around req.Dir.
func around[T any](req api.ListRunsRequest, ask func(api.ListRunsRequest) (T, error)) (T, error) {
	answer, err := ask(req)
	if agency.IsCode(err, agency.CodeNotGitRepo) {
		req.Dir = ""
		answer, err = ask(req)
	}
	return answer, err
}
