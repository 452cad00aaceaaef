package command

import (
	"context"
	"errors"
	"io"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/term"
)

// logText is what logs prints with --json.
type logText struct {
	Run    string `json:"run"`
	Stream string `json:"stream"`
	Text   string `json:"text"`
	// Truncated reports whether the log continues after Text.
	Truncated bool `json:"truncated"`
}

// PrintLog prints the log of a run.
func (d *Deps) PrintLog(ctx context.Context, client *api.Client, req api.LogsRequest) error {
	log, err := client.Logs(ctx, req)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	if d.JSON {
		data, err := io.ReadAll(io.LimitReader(log, logJSONLimit+1))
		if err != nil {
			return LogError(err)
		}
		text := logText{Run: req.Run, Stream: req.Stream, Truncated: len(data) > logJSONLimit}
		text.Text = string(data[:min(len(data), logJSONLimit)])
		return d.Print(text, nil)
	}
	if _, ok := term.Columns(d.Terminal); ok {
		before := d.Out.written
		if err = term.CopySafe(d.Out, log); err == nil && d.Out.written == before {
			d.Chat("nothing is printed so far")
		}
	} else {
		_, err = io.Copy(d.Out, log)
	}
	if req.Follow && ctx.Err() != nil {
		return nil // an interrupt is a normal end with --follow; otherwise a part of the log is missing
	}
	return LogError(err)
}

// LogError returns the error for a log that could not be read to its end; nil stays nil.
func LogError(err error) error {
	if _, known := errors.AsType[*agency.Error](err); err == nil || known {
		return err
	}
	return agency.Errorf(agency.CodeDaemonConnectFailed, "read the log: %w", err)
}

// logJSONLimit is the largest log that fits into an envelope, in bytes.
const logJSONLimit = 64 << 20
