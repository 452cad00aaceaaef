package command

import (
	"context"
	"errors"
	"net/http"
	"runtime/debug"
	"time"

	"agency"
	"agency/internal/api"
	"agency/internal/duration"
)

// Client returns a client of the daemon. It starts a daemon when none runs. A mistake in the
// configuration is an error.
func (d *Deps) Client() (*api.Client, error) {
	if cfg, err := d.Config(); err != nil {
		if cfg != nil && cfg.Path != "" && agency.IsCode(err, agency.CodeConfigInvalid) {
			d.Chat("agency: note: stop, doctor and config work until it is mended: agency config edit")
		}
		return nil, err
	}
	return d.ClientAnyway()
}

// ClientAnyway is Client for a command that can work with a running daemon even if the
// configuration has a mistake. All calls of one command share a client: it remembers that it has
// met a daemon of its own version, and does not stop one that replaced it in an upgrade.
func (d *Deps) ClientAnyway() (*api.Client, error) {
	d.connecting.Do(func() { d.client, d.clientErr = d.connect() })
	return d.client, d.clientErr
}

// RunningDaemon returns a client of the running daemon, of any version. The client neither starts
// nor replaces a daemon.
func (d *Deps) RunningDaemon() (*api.Client, error) {
	cfg, err := d.Places()
	if err != nil {
		return nil, err
	}
	client := api.NewClient(cfg.Socket, "", nil)
	client.Holder = func() (api.Holder, error) { return d.DaemonHolder(cfg.Home) }
	client.Header, client.Trace = d.identity(), d.Trace
	return client, nil
}

// CompletionClient returns a client for completion, which starts no daemon and prints nothing; nil
// without a configuration.
func (d *Deps) CompletionClient() *api.Client {
	cfg, _ := d.Config()
	if cfg == nil {
		return nil
	}
	client := api.NewClient(cfg.Socket, d.Version, nil)
	client.Header = d.identity()
	return client
}

func (d *Deps) connect() (*api.Client, error) {
	// A command lives for milliseconds: collecting garbage before 16 MB are in use costs more than
	// it saves.
	debug.SetGCPercent(400)
	cfg, err := d.Places()
	if err != nil {
		return nil, err
	}
	client := api.NewClient(cfg.Socket, d.Version, func(ctx context.Context) error {
		if d.cfgErr != nil {
			return d.cfgErr // with the defaults, a daemon could look for its agents on the wrong tmux server
		}
		if cfg.SocketNote != "" {
			d.Chat("agency: %s", cfg.SocketNote)
		}
		return d.SpawnDaemon(ctx, cfg, d.CallerConfig(), d.Env)
	})
	if d.InSandbox() {
		client.Start = func(ctx context.Context) error { return d.awaitOutside(ctx, client) }
		if d.Getenv("AGENCY_SOCKET") == "" {
			client.Refuse = agency.Errorf(agency.CodePermissionDenied, "an agent in this sandbox cannot reach the daemon; what works here is agency report").
				WithHint("an agent that runs others needs the sandbox level process or container, on Linux")
		}
	}
	client.Holder = func() (api.Holder, error) { return d.DaemonHolder(cfg.Home) }
	client.AwaitNext = func(ctx context.Context) error { return d.AwaitNext(ctx, cfg.Home) }
	client.Schema = d.SchemaVersion
	client.Header, client.Trace = d.identity(), d.Trace
	return client, nil
}

// InSandbox reports whether an agent in a sandbox runs the command.
func (d *Deps) InSandbox() bool { return d.Getenv(agency.SandboxVariable) != "" }

// outsideWait is how long a command in a sandbox waits for a daemon, and outsideEvery how often it
// tries.
const (
	outsideWait  = time.Minute
	outsideEvery = 250 * time.Millisecond
)

// awaitOutside waits until a daemon answers: a command in a sandbox cannot start one, but the
// user's next command does.
func (d *Deps) awaitOutside(ctx context.Context, client *api.Client) error {
	d.outside.Do(func() {
		d.Chat("agency: no daemon runs outside the sandbox; waiting for the user's next agency command")
	})
	for begin := time.Now(); time.Since(begin) < outsideWait; {
		if client.Answers(ctx) {
			return nil
		}
		select {
		case <-time.After(outsideEvery):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return agency.Errorf(agency.CodeDaemonConnectFailed, "no daemon ran outside the sandbox for %s", duration.Text(outsideWait)).
		WithHint("go on without; the next agency command of the user starts it")
}

// identity returns the headers that prove which run this process belongs to; nil outside of a run.
func (d *Deps) identity() http.Header {
	run := d.Getenv("AGENCY_RUN_ID")
	if run == "" {
		return nil
	}
	return http.Header{
		api.RunHeader: {run}, api.AttemptHeader: {d.Getenv("AGENCY_ATTEMPT")}, api.TokenHeader: {d.Getenv("AGENCY_TOKEN")},
	}
}

// Call asks the daemon for one operation.
func Call[Req, Resp any](ctx context.Context, d *Deps, op api.Operation[Req, Resp], req Req) (Resp, error) {
	client, err := d.Client()
	if err != nil {
		var none Resp
		return none, err
	}
	return api.Call(ctx, client, op, req)
}

// CallAnyway is Call through ClientAnyway.
func CallAnyway[Req, Resp any](ctx context.Context, d *Deps, op api.Operation[Req, Resp], req Req) (Resp, error) {
	client, err := d.ClientAnyway()
	if err != nil {
		var none Resp
		return none, err
	}
	return api.Call(ctx, client, op, req)
}

// AwaitNext returns when another daemon has replaced one that was asked to stop; when the daemon
// ended for another reason, it returns at once. Several parts of a command may wait, and one of
// them prints a note.
func (d *Deps) AwaitNext(ctx context.Context, home string) error {
	d.awaiting.Lock()
	defer d.awaiting.Unlock()
	holder, err := d.DaemonHolder(home)
	if err != nil || ctx.Err() != nil || !holder.Stopped() {
		return errors.Join(err, ctx.Err())
	}
	passing := d.Passing
	if d.Waits != nil {
		passing = d.Waits
	}
	defer passing("agency: the daemon was stopped; this command continues when the daemon starts again")()
	for {
		select {
		case <-time.After(nextEvery):
		case <-ctx.Done():
			return ctx.Err()
		}
		holder, err = d.DaemonHolder(home)
		if begun := !holder.Stopped() && (!holder.Locked || holder.Doing == api.DoingServe); err != nil || begun {
			return err
		}
	}
}

// nextEvery is how often a command that follows looks for the next daemon.
const nextEvery = 250 * time.Millisecond
