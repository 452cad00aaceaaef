package sandbox

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"agency"
	"agency/internal/docker"
)

// TryImage is Trials for containers of an image, in the engine that an environment names.
func (h *Host) TryImage(ctx context.Context, env agency.Environ, name string) ([]agency.SandboxTrial, error) {
	client, err := h.engine(ctx, env)
	if err != nil {
		return nil, err
	}
	image, err := checkImage(ctx, client, name)
	if err != nil {
		return nil, err
	}
	info, err := client.Info(ctx)
	if err != nil {
		return nil, err
	}
	dir, err := h.folder()
	if err != nil {
		return nil, err
	}
	made := []string{}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), trialTime)
		defer cancel()
		for _, at := range made {
			_ = h.Remove(ctx, at)
		}
		_ = os.RemoveAll(dir)
	}()
	networks := []agency.Network{agency.NetworkFull, agency.NetworkNone}
	return h.trials(ctx, agency.SandboxContainer, networks, func(ctx context.Context, network agency.Network, probe []string) (*exec.Cmd, error) {
		of := filepath.Join(dir, string(network))
		made = append(made, of)
		return h.tryContainer(ctx, client, image, &info, of, network, probe)
	})
}

// tryContainer makes a container without any file of the user, whose own files are in dir, and
// returns the command that runs Probe in it.
func (h *Host) tryContainer(ctx context.Context, client *docker.Client, image *agency.Image, info *docker.Info, dir string, network agency.Network, probe []string) (*exec.Cmd, error) {
	k := cargo{
		Socket: client.Socket, Name: "agency-" + filepath.Base(filepath.Dir(dir)) + "-" + string(network), Image: image.Name, Dir: "/",
		Link: filepath.Join(dir, "link"), Note: filepath.Join(dir, agency.EndNoteFile),
	}
	of := bare(h.Program, image.ID, k.Link, network, info)
	of.Labels = map[string]string{labelHome: filepath.Dir(h.Tmp)}
	at := filepath.Join(dir, CargoFile)
	if err := k.make(ctx, client, at, of); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, h.Program, append([]string{Carrier, at}, h.inside(network, probe)...)...)
	cmd.WaitDelay = time.Second
	cmd.Env = []string{}
	return cmd, nil
}
