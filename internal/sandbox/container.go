package sandbox

import (
	"context"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"agency"
	"agency/internal/docker"
	"agency/internal/file"
	"agency/internal/killpoint"
)

// Carrier is the argument that makes agency's program a carrier, the process that stands for a container
// outside; the file of the container and the agent's command line follow. FirstInside is the argument that
// makes it the first program in a container.
const (
	Carrier     = "carry"
	FirstInside = "first"
)

// linkInside is the folder of the link in a container.
const linkInside = "/run/agency/link"

// cargo is what a carrier needs to know. Its file is written before the container is made, and stays until the
// container is removed.
type cargo struct {
	Socket      string         `json:"socket"` // of the engine
	Name        string         `json:"name"`
	Image       string         `json:"image"`
	Dir         string         `json:"dir"`
	Link        string         `json:"link"` // folder of the link outside
	Mark        []string       `json:"mark"`
	Listens     bool           `json:"listens"`       // its network has a proxy
	Ports       []int          `json:"ports"`         // of the container; their listeners are the files from FirstPort on
	Note        string         `json:"note"`          // the file of an agency.EndNote
	OutOfMemory agency.EndNote `json:"out_of_memory"` // the note when the container needed too much memory
}

// CargoFile is the file of a container in the folder of its attempt.
const CargoFile = "container.json"

// container makes the container of an attempt, and returns the command line that runs it.
func (h *Host) container(ctx context.Context, c *agency.Confinement) (argv []string, env agency.Environ, err error) {
	client, err := h.engine(ctx, c.Env)
	if err != nil {
		return nil, nil, err
	}
	info, err := client.Info(ctx)
	if err != nil {
		return nil, nil, err
	}
	of, err := containerOf(c, &info)
	if err != nil {
		return nil, nil, err
	}
	number := c.Run.Attempt.Number
	k := cargo{
		Socket: client.Socket, Name: fmt.Sprintf("agency-%s-%d", c.Run.ID, number), Image: c.Run.Attempt.Image.Name, Dir: c.Run.Worktree,
		Link: filepath.Join(c.Home, "link"), Mark: c.Mark, Ports: c.Ports, Listens: c.Sandbox.Network == agency.NetworkAllow,
		Note: c.Note, OutOfMemory: outOfMemory(c.Run.Resources),
	}
	writes := slices.Sorted(maps.Keys(of.HostConfig.Tmpfs))
	for _, m := range of.HostConfig.Mounts {
		if !m.ReadOnly {
			writes = append(writes, m.Target)
		}
	}
	inside := []string{c.Program, Inside}
	env = environment(c).WithoutFunc(func(name string) bool { return slices.Contains(ofMachine, name) && !slices.Contains(c.Set, name) })
	if k.Listens {
		var args []string
		if args, env, err = listening(c, env); err != nil {
			return nil, nil, err
		}
		inside = append(inside, args...)
	}
	inside = slices.Concat(inside, second(writes).args(), c.Argv)
	at := filepath.Join(c.Attempt, CargoFile)
	if err := k.make(ctx, client, at, of); err != nil {
		return nil, nil, err
	}
	return append([]string{c.Program, Carrier, at}, inside...), env, nil
}

// make writes the file of a container, and then makes the container. It does not start it.
func (k *cargo) make(ctx context.Context, client *docker.Client, at string, of *docker.Container) error {
	if err := os.MkdirAll(k.Link, 0o700); err != nil {
		return err
	}
	data, err := json.Marshal(k)
	if err != nil {
		return err
	}
	if err := file.WriteDurable(at, data); err != nil {
		return err
	}
	killpoint.At("container.intended")
	if err := client.Create(ctx, k.Name, of); err != nil {
		return startProblem(k.Image, err)
	}
	killpoint.At("container.created")
	return nil
}

// ofMachine are the variables of the caller that name programs and files of the machine. A container does not
// get them: its image has its own.
var ofMachine = []string{
	"PATH", "SHELL", "EDITOR", "VISUAL", "PAGER", "LESS", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE",
}

// bare returns a container without the files of an attempt: agency's program is its first one.
func bare(program, image, link string, network agency.Network, info *docker.Info) *docker.Container {
	user := docker.User(info)
	of := &docker.Container{
		Image: image, User: user, Hostname: "sandbox", WorkingDir: "/", Env: []string{},
		Entrypoint: []string{program, FirstInside, linkInside}, Cmd: []string{},
		HostConfig: docker.HostConfig{
			NetworkMode: "none", CapDrop: []string{"ALL"}, SecurityOpt: []string{"no-new-privileges"}, ReadonlyRootfs: true,
			CgroupnsMode: "private", IpcMode: "private", LogConfig: docker.LogConfig{Type: "none"},
			Tmpfs: map[string]string{"/tmp": shared, "/var/tmp": shared, "/run": inMemoryOf("755", user, info)},
		},
	}
	if network == agency.NetworkFull {
		of.HostConfig.NetworkMode = "bridge"
	}
	if info.Has("selinux") { // otherwise it could not read what is not labelled for containers
		of.HostConfig.SecurityOpt = append(of.HostConfig.SecurityOpt, "label=disable")
	}
	bind(of, mount{"--ro-bind", program, program}, mount{"--ro-bind", link, linkInside})
	return of
}

// bind adds files and folders of the machine to a container.
func bind(of *docker.Container, mounts ...mount) {
	for _, m := range mounts {
		of.HostConfig.Mounts = append(of.HostConfig.Mounts, docker.Mount{
			Type: "bind", Source: m.from, Target: m.path, ReadOnly: m.how == "--ro-bind", BindOptions: &docker.BindOptions{Propagation: "rprivate"},
		})
		delete(of.HostConfig.Tmpfs, m.path)
	}
}

// containerOf returns what the container of an attempt is made of.
func containerOf(c *agency.Confinement, info *docker.Info) (*docker.Container, error) {
	of := bare(c.Program, c.Run.Attempt.Image.ID, filepath.Join(c.Home, "link"), c.Sandbox.Network, info)
	of.Labels = labels(c)
	home := path.Clean(c.Env.Lookup("HOME"))
	extra, err := configured(c, home)
	if err != nil {
		return nil, err
	}
	mounts := append(extra, state(c)...)
	tmpfs := of.HostConfig.Tmpfs
	if path.IsAbs(home) && home != "/" {
		own := inMemoryOf("700", of.User, info)
		tmpfs[home] = own
		for _, m := range mounts { // the engine would make these as root
			for dir := filepath.Dir(m.path); above(home, dir) && dir != home; dir = filepath.Dir(dir) {
				tmpfs[dir] = own
			}
		}
		mounts = append(mounts, mount{"--ro-bind", c.Git.User, filepath.Join(home, ".gitconfig")})
	}
	mounts = append(mounts, work(c)...)
	limited(&of.HostConfig, c.Run.Resources)
	bind(of, mounts...)
	return of, nil
}

// ownTasks is how many processes and threads of a container are not the agent's: the engine's while
// it starts, and then those of the first program.
const ownTasks = 16

// limited sets the limits of a container.
func limited(h *docker.HostConfig, r agency.Resources) {
	// Without room for swap, a container would use twice its memory.
	h.Memory, h.MemorySwap, h.NanoCPUs = int64(r.Memory), int64(r.Memory), int64(r.CPUs*1e9)
	if r.Pids > 0 {
		h.PidsLimit = int64(r.Pids) + ownTasks
	}
	if r.OpenFiles > 0 {
		h.Ulimits = []docker.Ulimit{{Name: "nofile", Soft: int64(r.OpenFiles), Hard: int64(r.OpenFiles)}}
	}
	if r.Tmp > 0 {
		for path := range h.Tmpfs {
			h.Tmpfs[path] += fmt.Sprintf(",size=%d", int64(r.Tmp))
		}
	}
}

// outOfMemory returns the note about an attempt that the kernel ended for its memory.
func outOfMemory(r agency.Resources) agency.EndNote {
	if r.Memory == 0 {
		return agency.EndNote{Words: "out of memory: the machine had none left"}
	}
	return agency.EndNote{
		Code: agency.CodeLimitReached, Words: agency.ReachedLimit{Limit: agency.LimitMemory, Value: r.Memory.String()}.String(),
		Reached: map[agency.LimitName]int64{agency.LimitMemory: 1},
	}
}

// The options of file systems in memory.
const shared = "rw,exec,nosuid,nodev,mode=1777"

// inMemoryOf returns the options of a file system in memory that belongs to a user. podman takes no
// owner: there every user of the container may write in it, and the container has only one.
func inMemoryOf(mode, user string, info *docker.Info) string {
	if info.Podman {
		return shared
	}
	uid, gid, _ := strings.Cut(user, ":")
	return "rw,exec,nosuid,nodev,mode=" + mode + ",uid=" + uid + ",gid=" + gid
}

// The labels of a container.
const (
	labelHome    = "agency.home" // the data root
	labelRun     = "agency.run"
	labelAttempt = "agency.attempt"
)

func labels(c *agency.Confinement) map[string]string {
	return map[string]string{
		labelHome: dataRoot(c.Run), labelRun: string(c.Run.ID), labelAttempt: strconv.Itoa(c.Run.Attempt.Number),
	}
}

// dataRoot returns the folder of agency's data, in which a run directory is runs/ID.
func dataRoot(r *agency.Run) string { return filepath.Dir(filepath.Dir(r.Dir)) }

// CheckImage returns an image if the engine that an environment names can start it. Otherwise it returns
// E_SANDBOX_UNAVAILABLE with a hint.
func (h *Host) CheckImage(ctx context.Context, env agency.Environ, image string) (*agency.Image, error) {
	client, err := h.engine(ctx, env)
	if err != nil {
		return nil, err
	}
	return checkImage(ctx, client, image)
}

// engine returns the engine that an environment names.
func (h *Host) engine(ctx context.Context, env agency.Environ) (*docker.Client, error) {
	if !supported {
		return nil, agency.Errorf(agency.CodeSandboxUnavailable, "the sandbox level container: it needs Linux").WithHint("the level that works here is process")
	}
	socket, err := docker.SocketOf(env)
	if err != nil {
		return nil, withNearest(err)
	}
	client := docker.New(socket)
	if err := client.Open(ctx); err != nil {
		return nil, withNearest(err)
	}
	if needsLibraries(h.Program) {
		return nil, agency.Errorf(agency.CodeSandboxUnavailable, "the sandbox level container: %s needs libraries that an image may not have", h.Program).
			WithHint("use a release of agency, or build it with CGO_ENABLED=0; without it: --sandbox process")
	}
	return client, nil
}

// needsLibraries reports whether a program is linked to libraries of the system.
func needsLibraries(program string) bool {
	file, err := elf.Open(program)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	return slices.ContainsFunc(file.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
}

// withNearest adds the nearest level to the hint of an error.
func withNearest(err error) error {
	if err == nil {
		return nil
	}
	e := agency.AsError(err)
	return e.WithHint("%s; without it: --sandbox process", e.Hint)
}

func checkImage(ctx context.Context, client *docker.Client, name string) (*agency.Image, error) {
	refused := func(format string, args ...any) *agency.Error {
		return agency.Errorf(agency.CodeSandboxUnavailable, "the sandbox level container: "+format, args...)
	}
	switch {
	case name == "":
		return nil, refused("no image is named for it").
			WithHint("name one that has the agent's program and git, in agency.toml, .devcontainer/devcontainer.json or your configuration: [sandbox] image = \"...\"")
	case !agency.ImageName(name):
		return nil, refused("%q is not the name of an image", name).WithHint("such as debian:12 or registry.example.com/team/image:tag")
	}
	image, err := client.Image(ctx, name)
	switch {
	case docker.Missing(err) && strings.HasPrefix(name, agency.BuiltImages):
		return nil, refused("the image %s, which agency built, is gone", name).WithHint("start a new run, which builds it again: agency run --prompt ...")
	case docker.Missing(err):
		return nil, refused("the image %s is not on this machine", name).WithHint("docker pull %s; agency itself fetches nothing", name)
	case err != nil:
		return nil, err
	case image.OS != "" && image.OS != "linux":
		return nil, refused("the image %s is for %s", name, image.OS).WithHint("name one for Linux")
	case image.Architecture != "" && image.Architecture != runtime.GOARCH:
		return nil, refused("the image %s is for the processor %s, and this machine is %s", name, image.Architecture, runtime.GOARCH).
			WithHint("docker pull --platform linux/%s %s", runtime.GOARCH, name)
	}
	return &agency.Image{Name: name, ID: image.ID}, nil
}

// startProblem returns the error for a container that the engine did not make or start.
func startProblem(image string, err error) error {
	if agency.IsCode(err, agency.CodeSandboxUnavailable) {
		return err
	}
	return agency.Errorf(agency.CodeSandboxUnavailable, "the engine could not start a container of %s: %w", image, err).
		WithHint("docker logs and the log of the engine may tell more")
}

// Remove ends and removes the container of an attempt, whose folder is given. It returns nil when
// there is none.
func (h *Host) Remove(ctx context.Context, attempt string) error {
	at := filepath.Join(attempt, CargoFile)
	data, err := file.ReadRegular(at, 1<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var k cargo
	if err == nil {
		err = json.Unmarshal(data, &k)
	}
	if err != nil {
		return err
	}
	client := docker.New(k.Socket)
	if err := client.Open(ctx); err != nil {
		return err
	}
	if err := client.Remove(ctx, k.Name); err != nil {
		return fmt.Errorf("remove the container %s: %w", k.Name, err)
	}
	killpoint.At("container.removed")
	if err := os.Remove(at); !errors.Is(err, fs.ErrNotExist) { // another call may have removed it
		return err
	}
	return nil
}
