package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"agency"
	"agency/internal/file"
)

// setupNote is the file in the folder of an attempt with the EndNote of a setup in a container.
const setupNote = "setup_note.json"

// setupInContainer runs a setup as RunSetup does, in a container like that of the agent. Then it
// removes the container, because that of the agent has the same name. The error is
// E_SANDBOX_UNAVAILABLE when the engine did not start the container.
func (la *launcher) setupInContainer(ctx context.Context, l *launching, s agency.SetupCommand) error {
	c, err := la.confinement(ctx, l, s.Env)
	if err != nil {
		return err
	}
	// The setup does not act for the agent, and gets none of its credentials.
	c.State = agency.SandboxState{}
	own := slices.DeleteFunc(names(s.Env[len(l.env):]), func(name string) bool { return name == "AGENCY_SOCKET" })
	c.Argv, c.Set = s.Argv, append(c.Set, own...)
	c.Mark, c.Note = []string{s.Mark}, filepath.Join(c.Attempt, setupNote)
	if err := os.Remove(c.Note); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return asFileError(err)
	}
	s.Hosts, s.Used = c.Hosts, func(use agency.NetworkUse) {
		if err := la.settler.recordNetwork(context.WithoutCancel(ctx), l.run.ID, l.run.Attempt.Number, &use); err != nil {
			la.log.Error("record what a setup was refused", "run", l.run.ID, "err", err)
		}
	}
	s.Argv, s.Env, err = la.sandbox.Command(ctx, c)
	if err == nil {
		err = withNote(la.runSetup(ctx, s), c.Note)
	}
	// The container is removed even when the time of the setup is over.
	removing, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTime)
	defer cancel()
	return errors.Join(err, la.sandbox.Remove(removing, c.Attempt))
}

// withNote adds to the error of a program in a container what the process that stands for the
// container wrote about its end to the file at path.
func withNote(err error, path string) error {
	data, readErr := file.ReadRegular(path, 64<<10)
	var note agency.EndNote
	if err == nil || readErr != nil || json.Unmarshal(data, &note) != nil || note.Words == "" {
		return err
	}
	if note.Code == agency.CodeSandboxUnavailable {
		return agency.Errorf(note.Code, "%s", note.Words).WithHint("docker logs and the log of the engine may tell more")
	}
	return fmt.Errorf("%w (%s)", err, note.Words)
}
