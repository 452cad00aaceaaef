package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"agency"
	"agency/internal/plain"
	"agency/internal/socket"
)

// target holds what the trials aim at: files, sockets and a process outside the sandbox that were made for
// them.
type target struct {
	Dir      string // has a file secret, and a socket
	Process  int    // of the user
	TCP, UDP string // addresses
	Abstract string // the name of a socket; empty where there are none
}

const (
	secretFile = "secret"
	socketFile = "socket"
)

// trialTime is how long all trials of one sandbox may take.
const trialTime = 20 * time.Second

// Trials tries, inside each sandbox of the level process or landlock that this host can make, all that the
// sandbox must refuse. It aims at files, sockets and a process of its own, and changes nothing else.
// E_SANDBOX_UNAVAILABLE: this host can make none, and the hint says what to do.
func (h *Host) Trials(ctx context.Context, level agency.SandboxLevel) ([]agency.SandboxTrial, error) {
	if err := h.Check(ctx, level); err != nil {
		return nil, err
	}
	networks := slices.DeleteFunc(agency.Networks(), func(n agency.Network) bool { return agency.Sandbox{Level: level, Network: n}.Check() != nil })
	return h.trials(ctx, level, networks, func(ctx context.Context, network agency.Network, probe []string) (*exec.Cmd, error) {
		return h.try(ctx, level, network, probe...)
	})
}

// trials tries all ways out of the sandboxes with these networks. command returns the command that
// runs Probe in one.
func (h *Host) trials(ctx context.Context, level agency.SandboxLevel, networks []agency.Network, command func(context.Context, agency.Network, []string) (*exec.Cmd, error)) ([]agency.SandboxTrial, error) {
	ctx, cancel := context.WithTimeout(ctx, trialTime)
	defer cancel()
	dir, err := h.folder()
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	t := target{Dir: dir}
	if supported {
		t.Abstract = "@agency-" + filepath.Base(dir)
	}
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
	aim, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	all := []agency.SandboxTrial{}
	for _, network := range networks {
		cmd, err := command(ctx, network, []string{string(aim)})
		var some []agency.SandboxTrial
		if err == nil {
			some, err = outcomes(cmd, level, network)
		}
		if err != nil {
			return nil, fmt.Errorf("try the sandbox %s with the network %s: %w", level, network, err)
		}
		all = append(all, some...)
	}
	return all, nil
}

// folder makes a folder for trials. When a daemon is killed, the next one removes it with Tmp.
func (h *Host) folder() (string, error) {
	if err := os.MkdirAll(h.Tmp, 0o700); err != nil {
		return "", err
	}
	return os.MkdirTemp(h.Tmp, "doctor-")
}

// listen opens the sockets of a target. Only the one for UDP answers.
func (t *target) listen(ctx context.Context) (closeAll func(), err error) {
	var open []interface{ Close() error }
	closeAll = func() {
		for _, one := range open {
			_ = one.Close()
		}
	}
	var config net.ListenConfig
	at, done, err := socket.Short(t.Dir, socketFile)
	if err != nil {
		return closeAll, err
	}
	defer done()
	for _, one := range []struct{ network, address string }{{"tcp", "127.0.0.1:0"}, {"unix", at}, {"unix", t.Abstract}} {
		if one.address == "" {
			continue
		}
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

// outcomes runs all trials in one sandbox.
func outcomes(cmd *exec.Cmd, level agency.SandboxLevel, network agency.Network) ([]agency.SandboxTrial, error) {
	if network == agency.NetworkAllow {
		// The sandbox passes the listeners for the proxy by this socket, as it does to a wrapper.
		own, theirs, err := socket.Pair()
		if err != nil {
			return nil, err
		}
		defer func() { _ = own.Close(); _ = theirs.Close() }()
		cmd.ExtraFiles = []*os.File{theirs}
	}
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && len(exit.Stderr) > 0 {
		return nil, fmt.Errorf("%w: %s", err, plain.OneLine(string(exit.Stderr)))
	}
	if err != nil {
		return nil, err
	}
	var list []agency.SandboxTrial
	if err := json.Unmarshal(out, &list); err != nil {
		return nil, fmt.Errorf("%w: %s", err, plain.OneLine(string(out)))
	}
	for i := range list {
		list[i].Level, list[i].Network = level, network
		list[i].Promised = list[i].Promised || network != agency.NetworkFull
	}
	return list, nil
}

// inside returns the command line of Probe in a sandbox with a file system of its own.
func (h *Host) inside(network agency.Network, probe []string) []string {
	argv := []string{h.Program, Inside}
	if network == agency.NetworkAllow {
		argv = append(argv, Listening, strconv.Itoa(proxyPort))
	}
	argv = append(argv, second(nil).args()...)
	return append(append(argv, h.Program, Probe), probe...)
}

// try returns the command that runs Probe, with these arguments, in a sandbox of the level process or
// landlock without any file of the user.
func (h *Host) try(ctx context.Context, level agency.SandboxLevel, network agency.Network, probe ...string) (*exec.Cmd, error) {
	var argv []string
	if level.Shares() {
		f, err := systemFence(h.Program, network)
		if err != nil {
			return nil, err
		}
		closed := slices.Concat([]string{h.Program, Inside}, f.args())
		if level == agency.SandboxProcess {
			closed = []string{seatbeltProgram, "-p", f.resolved().profile(nil)}
		}
		argv = slices.Concat(closed, []string{h.Program, Probe}, probe)
	} else {
		argv = append([]string{bubblewrap}, frame(network, 0)...)
		for _, m := range append(system(), mount{"--ro-bind", h.Program, h.Program}) {
			argv = append(argv, m.args(0)...)
		}
		argv = append(append(argv, "--"), h.inside(network, probe)...)
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = []string{"PATH=/usr/bin:/bin"}
	cmd.WaitDelay = time.Second
	return cmd, nil
}
