package maintain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/cli/command"
	"agency/internal/cli/term"
	"agency/internal/config"
	"agency/internal/file"
)

// serviceTime limits each call of systemctl or launchctl.
const serviceTime = time.Minute

// service is the daemon as a service of the user's service manager: a systemd user unit or a
// launchd agent.
type service struct {
	Path string // of the unit or plist
	text string
	// The commands that start it now and at each login, that stop and remove it, and that succeed
	// while it runs.
	start, stop [][]string
	active      []string
}

// newService returns the service of this user. It refuses systems without a known service manager.
func newService(d *command.Deps, cfg *config.Config) (*service, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the program itself: %w", err)
	}
	home := d.Getenv("HOME")
	if !filepath.IsAbs(home) {
		return nil, agency.Errorf(agency.CodeUsage, "HOME is not set").WithHint("set HOME")
	}
	env := [][2]string{{"PATH", d.Getenv("PATH")}, {"AGENCY_HOME", cfg.Home}, {"AGENCY_SOCKET", cfg.Socket}}
	if cfg.Exists {
		env = append(env, [2]string{"AGENCY_CONFIG", cfg.Path})
	}
	if runtime.GOOS == "darwin" {
		path, domain := filepath.Join(home, "Library", "LaunchAgents", "agency.daemon.plist"), "gui/"+strconv.Itoa(os.Getuid())
		return &service{
			Path: path, text: plist(exe, env),
			start: [][]string{{"launchctl", "bootstrap", domain, path}}, stop: [][]string{{"launchctl", "bootout", domain, path}},
			active: []string{"launchctl", "print", domain + "/agency.daemon"},
		}, nil
	}
	dir := d.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(home, ".config")
	}
	if _, err := exec.LookPath("systemctl"); err != nil {
		return nil, agency.Errorf(agency.CodeUsage, "there is no systemctl, and agency knows no other service manager here").
			WithHint("none is needed: every command starts the daemon")
	}
	ctl := func(args ...string) []string { return append([]string{"systemctl", "--user"}, args...) }
	return &service{
		Path: filepath.Join(dir, "systemd", "user", "agency.service"), text: unit(exe, env),
		start: [][]string{ctl("daemon-reload"), ctl("enable", "--now", "agency.service")}, stop: [][]string{ctl("disable", "--now", "agency.service")},
		active: ctl("is-active", "--quiet", "agency.service"),
	}, nil
}

// unit returns the systemd unit. Runs continue in tmux when the daemon stops, so systemd kills only
// the daemon itself.
func unit(exe string, env [][2]string) string {
	quoted := func(s string) string {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, `%`, `%%`, "\n", `\n`).Replace(s) + `"`
	}
	var b strings.Builder
	b.WriteString("[Unit]\nDescription=agency, which supervises coding agents\n\n[Service]\n")
	fmt.Fprintf(&b, "ExecStart=%s daemon run\n", strings.ReplaceAll(quoted(exe), "$", "$$"))
	for _, kv := range env {
		fmt.Fprintf(&b, "Environment=%s\n", quoted(kv[0]+"="+kv[1]))
	}
	b.WriteString("KillMode=process\nRestart=on-failure\n\n[Install]\nWantedBy=default.target\n")
	return b.String()
}

// plist returns the launchd agent.
func plist(exe string, env [][2]string) string {
	var b strings.Builder
	b.WriteString(`<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0"><dict>
  <key>Label</key><string>agency.daemon</string>
  <key>ProgramArguments</key><array>`)
	for _, arg := range []string{exe, "daemon", "run"} {
		fmt.Fprintf(&b, "<string>%s</string>", html.EscapeString(arg))
	}
	b.WriteString("</array>\n  <key>EnvironmentVariables</key><dict>")
	for _, kv := range env {
		fmt.Fprintf(&b, "<key>%s</key><string>%s</string>", kv[0], html.EscapeString(kv[1]))
	}
	b.WriteString("</dict>\n  <key>RunAtLoad</key><true/>\n  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>\n  <key>AbandonProcessGroup</key><true/>\n</dict></plist>\n")
	return b.String()
}

// manage runs one command of the service manager.
func manage(ctx context.Context, d *command.Deps, argv []string) error {
	ctx, cancel := context.WithTimeout(ctx, serviceTime)
	defer cancel()
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = d.Env, &said, &said, time.Second
	if err := cmd.Run(); err != nil {
		text := strings.TrimSpace(said.String())
		if text == "" {
			text = err.Error()
		}
		return agency.Errorf(agency.CodeUsage, "%s failed: %s", strings.Join(argv, " "), term.SafeLine(text)).
			WithHint("none is needed: every command starts the daemon")
	}
	return nil
}

// installed reports whether the service is installed.
func (s *service) installed() (bool, error) {
	_, err := os.Lstat(s.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// uninstall stops the service and removes its file, if it is installed. When the service manager
// fails, it removes the file all the same, and prints a note.
func (s *service) uninstall(ctx context.Context, d *command.Deps) (bool, error) {
	there, err := s.installed()
	if err != nil || !there {
		return false, err
	}
	for _, argv := range s.stop {
		if err := manage(ctx, d, argv); err != nil {
			d.Chat("agency: note: %s", agency.AsError(err).Message)
		}
	}
	return true, os.Remove(s.Path)
}

// userOnly refuses a command to a run: its agent may not change what belongs to the user.
func userOnly(d *command.Deps, cmd *cobra.Command) error {
	if !d.InsideRun() {
		return nil
	}
	return agency.Errorf(agency.CodePermissionDenied, "%s is for the user, not for a run", cmd.CommandPath()).
		WithHint("type it in a terminal of your own: %s", cmd.CommandPath())
}

// install writes the service and starts it. It replaces an earlier service, and a running daemon.
func (s *service) install(ctx context.Context, d *command.Deps) error {
	// launchd refuses a service that it already has, and systemd keeps one as it was when it
	// started.
	_, err := s.uninstall(ctx, d)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(s.Path), 0o700)
	}
	if err == nil {
		err = file.WriteAtomic(s.Path, []byte(s.text))
	}
	if err != nil {
		return agency.Errorf(agency.CodeInvalidPath, "write %s: %w", s.Path, file.Cause(err))
	}
	if _, _, err := endDaemon(ctx, d); err != nil { // the service cannot start beside it
		return err
	}
	for _, argv := range s.start {
		if err := manage(ctx, d, argv); err != nil {
			_ = os.Remove(s.Path)
			return err
		}
	}
	return nil
}

// NewService returns the command agency service.
func NewService(d *command.Deps) *cobra.Command {
	return command.Group(cobra.Command{
		Use:     "service",
		Short:   "Have the system start the daemon at login",
		GroupID: "maintain",
		Long: `Every command starts the daemon when none runs, so you do not need a service. With
one, the daemon runs from your login on: it alerts you, and continues sessions, before your first
command. The service is a systemd user unit or a launchd agent.`,
		Example: "  agency service install",
	}, newInstall(d), newUninstall(d), newServiceStatus(d))
}

// newInstall returns agency service install.
func newInstall(d *command.Deps) *cobra.Command {
	return command.New(cobra.Command{
		Use: "install", Short: "Start the daemon now and at each login", Example: "  agency service install", Args: command.Takes(),
	}, onService(d, func(ctx context.Context, s *service) error {
		if err := s.install(ctx, d); err != nil {
			return err
		}
		return reportService(d, s, "installed")
	}))
}

// newUninstall returns agency service uninstall.
func newUninstall(d *command.Deps) *cobra.Command {
	return command.New(cobra.Command{
		Use: "uninstall", Short: "Remove the service; runs continue", Example: "  agency service uninstall", Args: command.Takes(),
	}, onService(d, func(ctx context.Context, s *service) error {
		removed, err := s.uninstall(ctx, d)
		if err != nil {
			return err
		}
		if !removed {
			return reportService(d, s, "not installed")
		}
		return reportService(d, s, "removed")
	}))
}

// newServiceStatus returns agency service status.
func newServiceStatus(d *command.Deps) *cobra.Command {
	return command.New(cobra.Command{
		Use: "status", Short: "Show whether the service is installed and runs", Example: "  agency service status", Args: command.Takes(),
	}, onService(d, func(ctx context.Context, s *service) error {
		there, err := s.installed()
		switch {
		case err != nil:
			return err
		case !there:
			return reportService(d, s, "not installed")
		case manage(ctx, d, s.active) != nil:
			return reportService(d, s, "installed, does not run")
		}
		return reportService(d, s, "installed, runs")
	}))
}

// onService returns the body of a command on the service. Only the user may change the service.
func onService(d *command.Deps, do func(ctx context.Context, s *service) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		if cmd.Name() != "status" {
			if err := userOnly(d, cmd); err != nil {
				return err
			}
		}
		cfg, err := d.Config()
		if err != nil {
			return err
		}
		s, err := newService(d, cfg)
		if err != nil {
			return err
		}
		return do(cmd.Context(), s)
	}
}

func reportService(d *command.Deps, s *service, state string) error {
	return d.Print(map[string]string{"path": s.Path, "state": state}, func(w io.Writer) {
		_, _ = fmt.Fprintf(w, "%s: %s\n", state, term.SafeLine(s.Path))
	})
}
