package sandbox

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"agency"
	"agency/internal/plain"
)

// target is what an attempt to get out of a sandbox aims at: things outside that were made for it.
type target struct {
	Dir      string // has a file secret, and a socket
	Process  int    // of the user
	TCP, UDP string // addresses
	Abstract string // the name of a socket
}

const (
	secretFile = "secret"
	socketFile = "socket"
)

// trialTime is how long all trials of one sandbox may take.
const trialTime = 20 * time.Second

// Trials tries, from inside each sandbox that this host can make, what the sandbox is to refuse. It
// aims at files, sockets and a process of its own, and changes nothing else. E_SANDBOX_UNAVAILABLE:
// there is none, and the hint says what to do.
func (h *Host) Trials(ctx context.Context) ([]agency.SandboxTrial, error) {
	if err := h.Check(ctx, agency.SandboxProcess); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, trialTime)
	defer cancel()
	dir, err := os.MkdirTemp("", "agency-doctor-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	t := target{Dir: dir, Abstract: "@" + filepath.Base(dir)}
	if err := os.WriteFile(filepath.Join(dir, secretFile), []byte("secret\n"), 0o600); err != nil {
		return nil, err
	}
	closeAll, err := t.listen(ctx)
	defer closeAll()
	if err != nil {
		return nil, err
	}
	other := exec.CommandContext(ctx, "sleep", "60")
	if err := other.Start(); err != nil {
		return nil, err
	}
	defer func() { cancel(); _ = other.Wait() }()
	t.Process = other.Process.Pid
	all := []agency.SandboxTrial{}
	// That of allow is the one of none, with sockets that lead to the proxy.
	for _, network := range []agency.Network{agency.NetworkFull, agency.NetworkNone} {
		some, err := h.trials(ctx, network, t)
		if err != nil {
			return nil, fmt.Errorf("try the sandbox process with the network %s: %w", network, err)
		}
		all = append(all, some...)
	}
	return all, nil
}

// listen opens the sockets of a target. They answer nothing, but for UDP.
func (t *target) listen(ctx context.Context) (closeAll func(), err error) {
	var open []interface{ Close() error }
	closeAll = func() {
		for _, one := range open {
			_ = one.Close()
		}
	}
	var config net.ListenConfig
	for _, one := range []struct{ network, address string }{{"tcp", "127.0.0.1:0"}, {"unix", filepath.Join(t.Dir, socketFile)}, {"unix", t.Abstract}} {
		l, err := config.Listen(ctx, one.network, one.address)
		if err != nil {
			return closeAll, err
		}
		open = append(open, l)
		if one.network == "tcp" {
			t.TCP = l.Addr().String()
		}
	}
	udp, err := config.ListenPacket(ctx, "udp", "127.0.0.1:0")
	if err != nil {
		return closeAll, err
	}
	open = append(open, udp)
	t.UDP = udp.LocalAddr().String()
	go func() { // ends when the socket is closed
		for buf := make([]byte, 8); ; {
			n, from, err := udp.ReadFrom(buf)
			if err != nil {
				return
			}
			_, _ = udp.WriteTo(buf[:n], from)
		}
	}()
	return closeAll, nil
}

// trials runs all attempts in one sandbox.
func (h *Host) trials(ctx context.Context, network agency.Network, t target) ([]agency.SandboxTrial, error) {
	aim, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	out, err := h.try(ctx, network, string(aim)).Output()
	if err != nil {
		return nil, err
	}
	var list []agency.SandboxTrial
	if err := json.Unmarshal(out, &list); err != nil {
		return nil, fmt.Errorf("%w: %s", err, plain.OneLine(string(out)))
	}
	for i := range list {
		list[i].Network = network
		list[i].Promised = list[i].Promised || network == agency.NetworkNone
	}
	return list, nil
}

// try returns the command that runs Probe, with these arguments, in a sandbox without any file of
// the user.
func (h *Host) try(ctx context.Context, network agency.Network, probe ...string) *exec.Cmd {
	args := frame(network, 0)
	for _, m := range append(system(), mount{"--ro-bind", h.Program, h.Program}) {
		args = append(args, m.args(0)...)
	}
	args = append(append(args, "--", h.Program, Inside, h.Program, Probe), probe...)
	cmd := exec.CommandContext(ctx, bubblewrap, args...)
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	cmd.WaitDelay = time.Second
	return cmd
}
