package limit

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"agency"
	"agency/internal/file"
)

// hierarchies are the control groups of a machine, as one process sees them.
type hierarchies struct {
	own map[string]string // by controller: the folder that this process is in; "" is version 2
	top map[string]string // likewise: the folder that is mounted
}

// controllers are the controllers of the limits that groups enforce.
func controllers(name agency.LimitName) string {
	return map[agency.LimitName]string{agency.LimitMemory: "memory", agency.LimitPids: "pids", agency.LimitCPUs: "cpu"}[name]
}

// groups returns the control groups as this process sees them. Without any, or when they cannot be
// read, it is empty.
func groups() hierarchies {
	h, _ := readGroups(self)
	return h
}

// self is the folder with what the kernel shows of this process.
const self = "/proc/self"

// readGroups reads the control groups from the folder proc of a process in /proc. Without any, the result
// is empty.
func readGroups(proc string) (hierarchies, error) {
	mounts, err := os.ReadFile(filepath.Join(proc, "mountinfo"))
	own := []byte{}
	if err == nil {
		own, err = os.ReadFile(filepath.Join(proc, "cgroup"))
	}
	switch {
	case errors.Is(err, fs.ErrNotExist): // this system has none
		return hierarchies{}, nil
	case err != nil:
		return hierarchies{}, fmt.Errorf("read the control groups: %w", err)
	}
	return parse(string(mounts), string(own)), nil
}

// parse reads the forms of /proc/self/mountinfo and /proc/self/cgroup.
func parse(mounts, own string) hierarchies {
	h := hierarchies{own: map[string]string{}, top: map[string]string{}}
	roots := map[string]string{}
	for line := range strings.Lines(mounts) {
		before, after, _ := strings.Cut(line, " - ")
		fields, of := strings.Fields(before), strings.Fields(after)
		if len(fields) < 5 || len(of) < 3 {
			continue
		}
		switch of[0] {
		case "cgroup2":
			roots[""], h.top[""] = fields[3], fields[4]
		case "cgroup":
			for controller := range strings.SplitSeq(of[2], ",") {
				roots[controller], h.top[controller] = fields[3], fields[4]
			}
		}
	}
	for line := range strings.Lines(own) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for controller := range strings.SplitSeq(parts[1], ",") {
			if top, mounted := h.top[controller]; mounted {
				path := parts[2]
				if root := roots[controller]; root != "/" {
					path = strings.TrimPrefix(path, root)
				}
				h.own[controller] = filepath.Join(top, path)
			}
		}
	}
	return h
}

// by returns what would enforce a limit, or why no group does.
func (h hierarchies) by(name agency.LimitName) (string, error) {
	_, version, err := h.parent(controllers(name))
	if err != nil {
		return "", err
	}
	return version, nil
}

// parent returns the folder in which this process may make groups with a controller.
func (h hierarchies) parent(controller string) (folder, version string, err error) {
	if own, found := h.own[controller]; found {
		if writable(own) {
			return own, ByGroup1, nil
		}
		return "", "", fmt.Errorf("this user may not make control groups in %s", own)
	}
	own, found := h.own[""]
	if !found {
		return "", "", fmt.Errorf("there are no control groups with the controller %s", controller)
	}
	// Except for the topmost, a group of version 2 that gives its children a controller has no processes of
	// its own. So the parent is above this process.
	for dir := own; strings.HasPrefix(dir, h.top[""]); dir = filepath.Dir(dir) {
		if has(dir, "cgroup.controllers", controller) && writable(dir) && (has(dir, "cgroup.subtree_control", controller) || enable(dir, controller)) {
			return dir, ByGroup2, nil
		}
		if dir == "/" {
			break
		}
	}
	return "", "", fmt.Errorf("this user may not make control groups with the controller %s in %s or above", controller, own)
}

// writable reports whether this process may make groups in a folder and move processes there.
func writable(dir string) bool {
	return canWrite(dir) && canWrite(filepath.Join(dir, procs))
}

// procs is the file with the processes of a group.
const procs = "cgroup.procs"

// has reports whether a file of a group has a word.
func has(dir, name, word string) bool {
	data, err := os.ReadFile(filepath.Join(dir, name))
	return err == nil && slices.Contains(strings.Fields(string(data)), word)
}

// enable gives the children of a group a controller.
func enable(dir, controller string) bool {
	return set(dir, "cgroup.subtree_control", "+"+controller) == nil
}

// set writes a value into a file of a group. It makes no file: the kernel has those that it knows.
func set(dir, name, value string) error {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// Group is the control groups of one attempt: a folder in each hierarchy that has one of its limits.
type Group struct {
	attempt string            // the attempt's folder
	folders map[string]string // by controller
}

// foldersFile is the file in an attempt's folder that names the folders of its groups, one a line.
const foldersFile = "cgroups"

// nameOf returns the name of the groups of an attempt.
func nameOf(id agency.RunID, attempt int) string { return fmt.Sprintf("%s%s.%d", prefix, id, attempt) }

// prefix begins the names of the groups of attempts.
const prefix = "agency-"

// newGroup makes the groups of an attempt for those of its limits that groups enforce; nil when none
// are.
func newGroup(h hierarchies, dir string, id agency.RunID, attempt int, r agency.Resources, enforced []agency.EnforcedLimit) (*Group, error) {
	g := &Group{attempt: dir, folders: map[string]string{}}
	unique := []string{}
	for _, e := range enforced {
		if e.By != ByGroup1 && e.By != ByGroup2 {
			continue
		}
		controller := controllers(e.Limit)
		parent, _, err := h.parent(controller)
		if err != nil {
			return nil, fmt.Errorf("the limit %s cannot be kept: %w", e.Limit, err)
		}
		g.folders[controller] = filepath.Join(parent, nameOf(id, attempt))
		if !slices.Contains(unique, g.folders[controller]) {
			unique = append(unique, g.folders[controller])
		}
	}
	if len(unique) == 0 {
		return nil, nil //nolint:nilnil // no limit needs a group
	}
	if err := file.WriteAtomic(filepath.Join(dir, foldersFile), []byte(strings.Join(unique, "\n")+"\n")); err != nil {
		return nil, err
	}
	for _, folder := range unique {
		if err := os.Mkdir(folder, 0o750); err != nil && !errors.Is(err, fs.ErrExist) {
			return g, fmt.Errorf("make a control group: %w", err)
		}
	}
	return g, g.limit(r)
}

// openGroup returns the groups that newGroup made; nil when there are none.
func openGroup(h hierarchies, dir string, id agency.RunID, attempt int, enforced []agency.EnforcedLimit) (*Group, error) {
	folders, err := foldersOf(dir)
	if err != nil {
		return nil, err
	}
	g := &Group{attempt: dir, folders: map[string]string{}}
	for _, e := range enforced {
		top := map[string]string{ByGroup1: h.top[controllers(e.Limit)], ByGroup2: h.top[""]}[e.By]
		for _, folder := range folders {
			if top != "" && strings.HasPrefix(folder, top+"/") && filepath.Base(folder) == nameOf(id, attempt) {
				g.folders[controllers(e.Limit)] = folder
			}
		}
	}
	if len(g.folders) == 0 {
		return nil, nil //nolint:nilnil // no limit needs a group
	}
	return g, nil
}

// foldersOf returns the folders of the groups of an attempt, whose folder is dir.
func foldersOf(dir string) ([]string, error) {
	data, err := file.ReadRegular(filepath.Join(dir, foldersFile), 1<<16)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return strings.Fields(string(data)), err
}

// limit writes the limits. Files of swap are missing where the kernel does not count it.
func (g *Group) limit(r agency.Resources) error {
	const period = 100_000 // microseconds
	quota := strconv.Itoa(int(r.CPUs * period))
	memory, pids, cpu := g.folders["memory"], g.folders["pids"], g.folders["cpu"]
	var errs []error
	write := func(dir, name, value string) bool {
		err := set(dir, name, value)
		if errors.Is(err, fs.ErrNotExist) {
			return false
		}
		errs = append(errs, err)
		return true
	}
	must := func(dir string, names, values []string) {
		for i, name := range names {
			if dir != "" && write(dir, name, values[i]) {
				return
			}
		}
		if dir != "" {
			errs = append(errs, fmt.Errorf("%s has no file %s", dir, strings.Join(names, " or ")))
		}
	}
	bytes := strconv.FormatInt(int64(r.Memory), 10)
	must(memory, []string{"memory.max", "memory.limit_in_bytes"}, []string{bytes, bytes})
	if memory != "" {
		write(memory, "memory.swap.max", "0")
		write(memory, "memory.memsw.limit_in_bytes", bytes)
	}
	must(pids, []string{"pids.max"}, []string{strconv.Itoa(r.Pids)})
	if cpu != "" {
		write(cpu, "cpu.cfs_period_us", strconv.Itoa(period))
	}
	must(cpu, []string{"cpu.max", "cpu.cfs_quota_us"}, []string{quota + " " + strconv.Itoa(period), quota})
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("limit a control group: %w", err)
	}
	return nil
}

// files returns the files into which a process writes 0 to be in the groups.
func (g *Group) files() []string {
	files := []string{}
	for _, controller := range []string{"memory", "pids", "cpu"} {
		if dir := g.folders[controller]; dir != "" && !slices.Contains(files, filepath.Join(dir, procs)) {
			files = append(files, filepath.Join(dir, procs))
		}
	}
	return files
}

// counted are the limits whose enforcement the kernel counts.
var counted = []agency.LimitName{agency.LimitMemory, agency.LimitPids}

// count returns how often the kernel enforced a limit of the groups.
func (g *Group) count(name agency.LimitName) int64 {
	if dir := g.folders[controllers(name)]; dir != "" {
		return countIn(dir, name)
	}
	return 0
}

// OfContainer returns how often the kernel enforced the limits of the container that this process is
// in; nil for never.
func OfContainer() map[agency.LimitName]int64 {
	const mounted = "/sys/fs/cgroup" // with version 1, each controller has a folder there
	var counts map[agency.LimitName]int64
	for _, name := range counted {
		if n := max(countIn(mounted, name), countIn(filepath.Join(mounted, controllers(name)), name)); n > 0 {
			if counts == nil {
				counts = map[agency.LimitName]int64{}
			}
			counts[name] = n
		}
	}
	return counts
}

// countIn returns how often the kernel enforced a limit of the group with a folder.
func countIn(dir string, name agency.LimitName) int64 {
	switch name { //nolint:exhaustive // nothing of the others is counted
	case agency.LimitMemory:
		return max(number(dir, "memory.events", "oom_kill"), number(dir, "memory.oom_control", "oom_kill"))
	case agency.LimitPids:
		return number(dir, "pids.events", "max")
	}
	return 0
}

// number returns the number after a word in a file of a group; 0 when it has none.
func number(dir, name, word string) int64 {
	f, err := os.Open(filepath.Join(dir, name))
	if err != nil {
		return 0
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if key, value, _ := strings.Cut(lines.Text(), " "); key == word {
			n, _ := strconv.ParseInt(value, 10, 64)
			return n
		}
	}
	return 0
}

// Remove removes the groups of an attempt that has ended, if it has any. What still runs in them,
// such as a daemon that the agent started, continues in the group of this process.
func Remove(dir string, id agency.RunID, attempt int) error {
	return removeSeen(self, dir, id, attempt)
}

// removeSeen is Remove in a process of which the kernel shows the groups in the folder proc.
func removeSeen(proc, dir string, id agency.RunID, attempt int) error {
	folders, err := foldersOf(dir)
	if len(folders) == 0 {
		return err
	}
	h, err := readGroups(proc)
	if err != nil {
		return err
	}
	for _, folder := range folders {
		if filepath.Base(folder) != nameOf(id, attempt) || !h.holds(folder) {
			continue // no wrapper wrote it, or it is from another boot
		}
		if err := h.remove(folder); err != nil {
			return err
		}
	}
	return os.Remove(filepath.Join(dir, foldersFile))
}

// holds reports whether a path is in a mounted hierarchy.
func (h hierarchies) holds(folder string) bool {
	for _, top := range h.top {
		if filepath.Clean(folder) == folder && strings.HasPrefix(folder, top+"/") {
			return true
		}
	}
	return false
}

// removeTime is how long Remove tries to remove a group.
const removeTime = 2 * time.Second

// remove removes a group and those below it.
func (h hierarchies) remove(folder string) error {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := h.remove(filepath.Join(folder, e.Name())); err != nil {
				return err
			}
		}
	}
	for begin := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		err := rmdir(folder)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if time.Since(begin) > removeTime {
			return fmt.Errorf("remove the control group %s: %w", folder, err)
		}
		h.empty(folder)
	}
}

// empty moves the processes of a group into that of this process.
func (h hierarchies) empty(folder string) {
	for controller, top := range h.top {
		if !strings.HasPrefix(folder, top+"/") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(folder, procs))
		if err != nil {
			return
		}
		for pid := range strings.FieldsSeq(string(data)) {
			_ = set(h.own[controller], procs, pid) // it may have ended
		}
		return
	}
}

// Leave moves this process, which serves all runs, out of the groups of the run that started it. A group of
// version 2 that has groups cannot have processes, so there Leave moves the process into a new group beside
// them.
func Leave() error {
	h := groups()
	var errs []error
	for controller, own := range h.own {
		for dir := own; strings.HasPrefix(dir, h.top[controller]+"/"); dir = filepath.Dir(dir) {
			if !nameRule().MatchString(filepath.Base(dir)) {
				continue
			}
			to := filepath.Dir(dir)
			if controller == "" && set(to, procs, "0") != nil {
				to = filepath.Join(to, prefix+"daemon")
				if err := os.Mkdir(to, 0o750); err != nil && !errors.Is(err, fs.ErrExist) {
					errs = append(errs, err)
				}
			}
			errs = append(errs, set(to, procs, strconv.Itoa(os.Getpid())))
		}
	}
	return errors.Join(errs...)
}

func nameRule() *regexp.Regexp { return regexp.MustCompile(`^agency-(r_[0-9A-Z]{26})\.([0-9]+)$`) }

// Left is a control group of an attempt.
type Left struct {
	Run     agency.RunID
	Attempt int
	Folder  string
}

// All returns the control groups of attempts in the folders in which this process would make them.
func All() []Left {
	h, found := groups(), []Left{}
	for _, controller := range []string{"memory", "pids", "cpu"} {
		parent, _, err := h.parent(controller)
		if err != nil {
			continue
		}
		entries, _ := os.ReadDir(parent)
		for _, e := range entries {
			if m := nameRule().FindStringSubmatch(e.Name()); m != nil && e.IsDir() {
				n, _ := strconv.Atoi(m[2])
				left := Left{agency.RunID(m[1]), n, filepath.Join(parent, e.Name())}
				if !slices.Contains(found, left) {
					found = append(found, left)
				}
			}
		}
	}
	return found
}
