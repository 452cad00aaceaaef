package maintain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"agency"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/term"
	"agency/internal/config"
	"agency/internal/file"
	"agency/internal/plain"
)

// uninstallOptions are the flags and dependencies of agency uninstall.
type uninstallOptions struct {
	*command.Deps

	yes  bool
	stop bool
}

// NewUninstall returns the command agency uninstall.
func NewUninstall(d *command.Deps) *cobra.Command {
	o := &uninstallOptions{Deps: d}
	cmd := command.New(cobra.Command{
		Use:     "uninstall",
		Short:   "Remove everything that agency wrote, except the work of runs",
		GroupID: "maintain",
		Long: `Lists what agency wrote on this machine, asks, and removes it: the worktrees and
tmux sessions of all runs, the record and the logs, the configuration, the service, and what make
install put beside the program. In repositories it removes its identity and its worktrees. Branches
of runs and saved work (refs/agency) stay there; it saves uncommitted work first. It follows no
link. While a run or session is live, it removes nothing, unless --stop ends it.`,
		Example: "  agency uninstall\n  agency uninstall --stop --yes",
		Args:    command.Takes(),
	}, o.run)
	cmd.Flags().BoolVar(&o.yes, "yes", false, "do not ask")
	cmd.Flags().BoolVar(&o.stop, "stop", false, "end live runs and sessions first")
	return cmd
}

// uninstallation is what agency uninstall removes, and what stays.
type uninstallation struct {
	Removed  bool           `json:"removed"` // false for a list of what would be removed
	Runs     []string       `json:"runs"`
	Live     []string       `json:"live"`     // runs and sessions
	Sessions []string       `json:"sessions"` // ids
	Home     string         `json:"home"`
	Files    []string       `json:"files"` // outside of the data root
	Repos    []api.LeftRepo `json:"repos"` // with the work that stays in them
	Stays    []string       `json:"stays"` // what agency does not remove, in words

	service  *service // nil when none is installed
	recorded bool     // whether the daemon lists the runs, sessions and repositories
}

func (o *uninstallOptions) run(cmd *cobra.Command, _ []string) error {
	if err := userOnly(o.Deps, cmd); err != nil {
		return err
	}
	ctx := cmd.Context()
	cfg, err := o.Places()
	if err != nil {
		return err
	}
	if err := checkHome(cfg.Home, o.Getenv("HOME")); err != nil {
		return err
	}
	u, err := o.look(ctx, cfg)
	if err != nil {
		return err
	}
	switch {
	case len(u.Live) > 0 && !o.stop:
		return agency.Errorf(agency.CodeInvalidState, "still live: %s; nothing was removed", strings.Join(u.Live, ", ")).
			WithHint("end them too: agency uninstall --stop")
	case o.yes:
	case !o.OnTerminal() || o.JSON:
		if err := o.Print(u, func(w io.Writer) { u.write(w, false) }); err != nil {
			return err
		}
		o.Chat("nothing was removed; to do it: agency uninstall --yes")
		return nil
	default:
		u.write(o.Out, false)
		yes, err := term.ReadLines(o.In).Confirm(ctx, o.Err, "Remove all of this?", false)
		if ctx.Err() != nil {
			return err
		}
		if err != nil || !yes {
			o.Chat("nothing was removed")
			return nil
		}
	}
	if err := o.remove(ctx, cfg, u); err != nil {
		return err
	}
	u.Removed = true
	return o.Print(u, func(w io.Writer) { u.write(w, true) })
}

// checkHome refuses a data root that cannot be agency's alone.
func checkHome(home, user string) error {
	info, err := os.Lstat(home)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return agency.Errorf(agency.CodeInvalidPath, "read %s: %w", home, command.RootCause(err))
	case !info.IsDir():
		return agency.Errorf(agency.CodeInvalidPath, "the data root %s is a link or a file, which agency uninstall does not follow", home).
			WithHint("set AGENCY_HOME to the folder itself")
	}
	if inside, err := filepath.Rel(home, user); err == nil && inside != ".." && !strings.HasPrefix(inside, "../") {
		return agency.Errorf(agency.CodeInvalidPath, "the data root %s holds your home directory", home).WithHint("remove by hand what docs/architecture.md lists under Files")
	}
	return nil
}

// look returns what there is to remove.
func (o *uninstallOptions) look(ctx context.Context, cfg *config.Config) (*uninstallation, error) {
	u := &uninstallation{Runs: []string{}, Live: []string{}, Sessions: []string{}, Home: cfg.Home, Files: []string{}, Repos: []api.LeftRepo{}, Stays: []string{}}
	var err error
	if u.recorded, err = hasRecord(cfg.Home); err == nil && u.recorded {
		err = o.lookAtRecord(ctx, u)
	}
	if err != nil {
		return nil, err
	}
	if o.ConfigPath == "" && cfg.Exists {
		u.Files = append(u.Files, cfg.Path)
	}
	if s, err := newService(o.Deps, cfg); err == nil {
		if there, err := s.installed(); err == nil && there {
			u.service, u.Files = s, append(u.Files, s.Path)
		}
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the program itself: %w", err)
	}
	files, stays := installed(exe)
	u.Files = append(u.Files, files...)
	if stays != "" {
		u.Stays = append(u.Stays, stays)
	}
	return u, nil
}

// hasRecord reports whether a data root has a record, or run directories. With run directories but
// without a record, the daemon does not start: its error names the way to get the record back.
func hasRecord(home string) (bool, error) {
	path := filepath.Join(home, "agency.db")
	_, err := os.Lstat(path)
	if err == nil {
		return true, nil
	}
	var runs []fs.DirEntry
	if errors.Is(err, fs.ErrNotExist) {
		path = filepath.Join(home, "runs")
		runs, err = os.ReadDir(path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, agency.Errorf(agency.CodeInvalidPath, "read %s: %w", path, command.RootCause(err))
	}
	return len(runs) > 0, nil
}

// lookAtRecord adds the runs, sessions and repositories that the daemon knows.
func (o *uninstallOptions) lookAtRecord(ctx context.Context, u *uninstallation) error {
	runs, err := command.CallAnyway(ctx, o.Deps, api.ListRuns, api.ListRunsRequest{})
	if err != nil {
		return err
	}
	for i := range runs.Runs {
		r := &runs.Runs[i]
		u.Runs = append(u.Runs, string(r.ID))
		if !r.State.Final() {
			u.Live = append(u.Live, r.Ref())
		}
	}
	sessions, err := command.CallAnyway(ctx, o.Deps, api.ListSessions, api.ListSessionsRequest{})
	if err != nil {
		return err
	}
	for i := range sessions.Sessions {
		s := &sessions.Sessions[i]
		u.Sessions = append(u.Sessions, string(s.ID))
		if s.CompletedAt == nil {
			u.Live = append(u.Live, "session "+string(s.ID))
		}
	}
	repos, err := command.CallAnyway(ctx, o.Deps, api.LeaveRepos, api.LeaveReposRequest{})
	u.Repos = repos.Repos
	return err
}

// installed returns the files that make install put on the machine together with the program exe,
// or in words why the program stays.
func installed(exe string) (files []string, stays string) {
	prefix := filepath.Dir(filepath.Dir(exe))
	if owned, err := os.ReadFile("/var/lib/dpkg/info/agency.list"); err == nil && slices.Contains(strings.Split(string(owned), "\n"), exe) {
		return nil, "the program is a Debian package: sudo apt purge agency"
	}
	names, _ := filepath.Glob(filepath.Join(prefix, "share", "man", "man1", "agency-*.1")) // the pattern is valid
	for _, rel := range []string{"man/man1/agency.1", "bash-completion/completions/agency", "zsh/site-functions/_agency", "fish/vendor_completions.d/agency.fish"} {
		names = append(names, filepath.Join(prefix, "share", rel))
	}
	for _, name := range names {
		if info, err := os.Lstat(name); err == nil && info.Mode().IsRegular() {
			files = append(files, name)
		}
	}
	if len(files) == 0 {
		return nil, "the program " + exe + ", which make install did not put there"
	}
	return append(files, exe), ""
}

// remove removes what look found. If something in runs or repositories cannot be removed, it stops
// while the record is still complete.
func (o *uninstallOptions) remove(ctx context.Context, cfg *config.Config, u *uninstallation) error {
	if u.recorded {
		if err := o.removeRecord(ctx, u); err != nil {
			return err
		}
	}
	if left, _ := filepath.Glob(filepath.Join(cfg.Home, "worktrees", "*", "*")); len(left) > 0 { // the pattern is valid
		return agency.Errorf(agency.CodeInvalidState, "%s belongs to no run, and may hold work", left[0]).
			WithHint("move it away or remove it, and try again; agency doctor shows more")
	}
	if u.service != nil {
		if _, err := u.service.uninstall(ctx, o.Deps); err != nil {
			return agency.Errorf(agency.CodeInvalidPath, "remove %s: %w", u.service.Path, command.RootCause(err))
		}
	}
	if _, _, err := endDaemon(ctx, o.Deps); err != nil {
		return err
	}
	if err := removeHome(cfg, u); err != nil {
		return err
	}
	defer func() { _ = os.Remove(filepath.Dir(cfg.Path)) }() // if it is empty
	for _, name := range u.Files {
		if err := os.Remove(name); errors.Is(err, fs.ErrPermission) {
			u.Stays = append(u.Stays, name+", which you may not remove: sudo rm "+plain.ShellWord(name))
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			u.Stays = append(u.Stays, fmt.Sprintf("%s: %v", name, command.RootCause(err)))
		}
	}
	return nil
}

// sessionEnd is how long a session may take to end when it is cancelled. It exceeds the longest
// grace of an agent.
const sessionEnd = 2 * time.Hour

// removeRecord ends live runs and sessions, and removes runs, sessions and what agency keeps in
// repositories.
func (o *uninstallOptions) removeRecord(ctx context.Context, u *uninstallation) error {
	for _, live := range u.Live {
		if id, ok := strings.CutPrefix(live, "session "); ok {
			_, err := command.CallAnyway(ctx, o.Deps, api.CancelSession, api.SessionRequest{Session: id})
			if err == nil {
				_, err = command.CallAnyway(ctx, o.Deps, api.WaitSession, api.WaitSessionRequest{Session: id, TimeoutMS: sessionEnd.Milliseconds()})
			}
			if err != nil {
				return err
			}
		}
	}
	for _, id := range u.Runs {
		if _, err := command.CallAnyway(ctx, o.Deps, api.RemoveRun, api.RemoveRunRequest{Run: id, Stop: o.stop}); err != nil {
			return err
		}
	}
	for _, id := range u.Sessions {
		if _, err := command.CallAnyway(ctx, o.Deps, api.RemoveSessions, api.RemoveSessionsRequest{Session: id}); err != nil {
			return err
		}
	}
	repos, err := command.CallAnyway(ctx, o.Deps, api.LeaveRepos, api.LeaveReposRequest{Apply: true})
	u.Repos = repos.Repos
	return err
}

// removeHome removes the data root, except what agency did not write. The record, agency.db, is the
// first in the alphabet and goes last: after a failure, the next uninstall still knows the runs.
func removeHome(cfg *config.Config, u *uninstallation) error {
	entries, err := os.ReadDir(cfg.Home)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return agency.Errorf(agency.CodeInvalidPath, "read %s: %w", cfg.Home, command.RootCause(err))
	}
	folders := []string{"backups", "checks", "git", "landing", "locks", "logs", "queues", "runs", "sessions", "standby", "tmp", "worktrees"}
	for _, e := range slices.Backward(entries) {
		name := e.Name()
		if slices.Contains(u.Files, filepath.Join(cfg.Home, name)) {
			continue // the configuration, which goes with the files outside
		}
		if !slices.Contains(folders, name) && !strings.HasPrefix(name, "agency.db") && !strings.HasPrefix(name, "agencyd.") {
			u.Stays = append(u.Stays, filepath.Join(cfg.Home, name)+", which agency did not write")
			continue
		}
		if err := file.RemoveBeneath(cfg.Home, name); err != nil {
			return agency.Errorf(agency.CodeCleanupFailed, "%w", err).WithHint("agency uninstall, again")
		}
	}
	if info, err := os.Lstat(cfg.Socket); err == nil && info.Mode()&fs.ModeSocket != 0 {
		_ = os.Remove(cfg.Socket)
	}
	_ = os.Remove(cfg.Home) // if it is empty
	return nil
}

// write prints what is or was removed, and what stays.
func (u *uninstallation) write(w io.Writer, done bool) {
	verb := "agency uninstall removes:"
	if done {
		verb = "removed:"
	}
	_, _ = fmt.Fprintln(w, verb)
	line := func(name, text string) { _, _ = fmt.Fprintf(w, "  %-9s %s\n", name, term.SafeLine(text)) }
	if len(u.Runs) > 0 {
		line("runs", fmt.Sprintf("%d, with their worktrees and tmux sessions; unsaved work is saved", len(u.Runs)))
	}
	if len(u.Sessions) > 0 {
		line("sessions", fmt.Sprintf("%d, with their status files", len(u.Sessions)))
	}
	line("data", u.Home)
	for _, name := range u.Files {
		if !strings.Contains(name, "/share/") {
			line("file", name)
		}
	}
	if n := len(slices.DeleteFunc(slices.Clone(u.Files), func(name string) bool { return !strings.Contains(name, "/share/") })); n > 0 {
		line("files", fmt.Sprintf("%d manual pages and completions", n))
	}
	for i := range u.Repos {
		line("in", u.Repos[i].Root+": what agency keeps in its git directory")
	}
	const most = 10 // names that are printed of one repository
	for i := range u.Repos {
		r := &u.Repos[i]
		if r.Problem != "" {
			_, _ = fmt.Fprintf(w, "not done in %s: %s\n", term.SafeLine(r.Root), term.SafeLine(r.Problem))
		}
		refs := slices.Concat(r.Branches, r.Saved)
		if len(refs) == 0 {
			continue
		}
		_, _ = fmt.Fprintf(w, "stays in %s, for you to merge or delete:\n", term.SafeLine(r.Root))
		for _, ref := range refs[:min(len(refs), most)] {
			_, _ = fmt.Fprintf(w, "  %s\n", term.SafeLine(ref))
		}
		if more := len(refs) - most; more > 0 {
			_, _ = fmt.Fprintf(w, "  and %d more: git for-each-ref refs/heads refs/agency\n", more)
		}
	}
	for _, text := range u.Stays {
		_, _ = fmt.Fprintf(w, "stays: %s\n", term.SafeLine(text))
	}
}
