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

// AllLines has PrintLog print a log from its beginning.
const AllLines = -1

// PrintLog prints the log of a run: its last lines, of which there may be none, and what follows.
func (d *Deps) PrintLog(ctx context.Context, client *api.Client, req api.LogsRequest, lines int) error {
	skip := int64(0)
	if lines != AllLines {
		var err error
		if skip, err = beforeLast(ctx, client, req, lines); err != nil {
			return err
		}
	}
	log, err := client.Logs(ctx, req)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	if _, err := io.CopyN(io.Discard, log, skip); err != nil {
		return LogError(err)
	}
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
		return nil // the user who follows has seen enough; otherwise a part of the log is missing
	}
	return LogError(err)
}

// beforeLast returns how many bytes of a log, as it is now, are before its last lines.
func beforeLast(ctx context.Context, client *api.Client, req api.LogsRequest, lines int) (int64, error) {
	req.Follow = false
	log, err := client.Logs(ctx, req)
	if err != nil {
		return 0, err
	}
	defer func() { _ = log.Close() }()
	starts, size, fresh := []int64{}, int64(0), true // where the last lines begin
	buf := make([]byte, 64<<10)
	for {
		n, err := log.Read(buf)
		for i, b := range buf[:n] {
			if fresh && lines > 0 {
				starts = append(starts[max(0, len(starts)-lines+1):], size+int64(i))
			}
			fresh = b == '\n'
		}
		size += int64(n)
		switch {
		case errors.Is(err, io.EOF) && len(starts) == 0:
			return size, nil
		case errors.Is(err, io.EOF):
			return starts[0], nil
		case err != nil:
			return 0, LogError(err)
		}
	}
}

// LogError returns the error for a log that could not be read to its end; nil stays nil.
func LogError(err error) error {
	if _, known := errors.AsType[*agency.Error](err); err == nil || known {
		return err
	}
	return agency.Errorf(agency.CodeDaemonConnectFailed, "read the log: %w", err)
}

// logJSONLimit is how much of a log fits into an envelope, in bytes.
const logJSONLimit = 64 << 20
