package session

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"

	"agency"
	"agency/internal/config"
	"agency/internal/queuer"
	"agency/internal/resolve"
	"agency/internal/supervisor"
)

// Fixups gives the queuer the attempts and runs that mend work whose checks fail.
type Fixups struct {
	Runs     Runs
	Projects Projects
	Spec     func(ctx context.Context, id agency.RunID) ([]byte, error) // as recorded
	Config   func() *config.Config                                      // the daemon's
	Log      *slog.Logger
}

// Resume begins another attempt of an ended run.
func (f Fixups) Resume(ctx context.Context, r *agency.Run, prompt string, env []string) error {
	settings, err := resolve.Later(f.Config(), r)
	if err != nil {
		return err
	}
	resumed, err := f.Runs.ResumeRun(ctx, supervisor.ResumeRequest{Ref: string(r.ID), Prompt: prompt, Env: env, Settings: settings})
	if resumed != nil {
		for _, text := range resumed.Warnings {
			f.Log.Warn("resume a run to mend its work", "run", r.ID, "note", text)
		}
	}
	return err
}

// Begin makes a run like one that was removed, to continue its work.
func (f Fixups) Begin(ctx context.Context, b *queuer.Beginning) (*agency.Run, error) {
	data, err := f.Spec(ctx, b.After.ID)
	if err != nil {
		return nil, err
	}
	var spec agency.Spec
	if err := json.Unmarshal(data, &spec); err != nil {
		return nil, fmt.Errorf("read the spec of %s: %w", b.After.Ref(), err)
	}
	spec.BaseRef, spec.Branch, spec.Inputs, spec.Env = b.From, "", nil, nil // the record has no values of an environment
	spec.Prompt = agency.SpecPrompt{Text: b.Prompt}
	settings, err := resolve.Later(f.Config(), b.After)
	if err != nil {
		return nil, err
	}
	at, err := f.Projects.Locate(ctx, spec.Repo, spec.Repo, spec.BaseRef)
	if err != nil {
		return nil, err
	}
	for _, spec.Name = range []string{b.After.Ref() + "-fix", ""} {
		var r *agency.Run
		var warnings []string
		r, warnings, err = f.Runs.CreateRun(ctx, supervisor.NewRun{ID: b.ID, Owner: b.After.Owner, Spec: spec, Env: b.Env, Place: at, Settings: settings})
		for _, text := range warnings {
			f.Log.Warn("begin a run to mend the work of another one", "run", b.ID, "note", text)
		}
		if err == nil || !agency.IsCode(err, agency.CodeNameExists) && !agency.IsCode(err, agency.CodeSpecInvalid) {
			return r, err
		}
	}
	return nil, err
}
