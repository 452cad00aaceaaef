package limit

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"agency"
)

// joining is a script that puts itself into control groups and under rlimits, and then becomes the runner.
// So no process of the runner ever runs without the limits, and the wrapper does not get them. $1 is the
// rlimits, as options of ulimit; then come the files of the groups, "--" and the command line.
const joining = `set -e
for one in $1; do ulimit "-${one%%=*}" "${one#*=}"; done
shift
while [ "$1" != -- ]; do echo 0 >"$1"; shift; done
shift
exec "$@"`

// Kept is the limits of an attempt while it runs. A nil Kept has no limits.
type Kept struct {
	launch *agency.Launch
	group  *Group // nil without a control group
	meter  *meter // nil without a limit of the disk

	mu  sync.Mutex
	use agency.LimitUse
}

// Begin makes what enforces the limits of an attempt, and returns the command line that runs within them. It
// changes nothing for an attempt without limits. The caller calls End, also after an error.
func Begin(launch *agency.Launch) (*Kept, []string, error) {
	if len(launch.Limits) == 0 {
		return nil, launch.Argv, nil
	}
	k := keep(launch)
	var err error
	if k.group, err = newGroup(groups(), launch.AttemptDir, launch.RunID, launch.Attempt, launch.Resources, launch.Limits); err != nil {
		return k, nil, err
	}
	var rlimits, files []string
	for _, e := range launch.Limits {
		switch {
		case e.By == ByRlimit && e.Limit == agency.LimitOpenFiles:
			rlimits = append(rlimits, fmt.Sprintf("n=%d", launch.Resources.OpenFiles))
		case e.By == ByRlimit && e.Limit == agency.LimitMemory:
			rlimits = append(rlimits, fmt.Sprintf("d=%d", launch.Resources.Memory>>10))
		}
	}
	if k.group != nil {
		files = k.group.files()
	}
	if len(rlimits)+len(files) == 0 {
		return k, launch.Argv, nil
	}
	argv := append([]string{"/bin/sh", "-c", joining, "agency", strings.Join(rlimits, " ")}, files...)
	return k, append(append(argv, "--"), launch.Argv...), nil
}

// keep returns the limits of an attempt without a control group.
func keep(launch *agency.Launch) *Kept {
	k := &Kept{launch: launch, use: agency.LimitUse{Enforced: launch.Limits, Reached: []agency.ReachedLimit{}}}
	if slices.ContainsFunc(launch.Limits, func(e agency.EnforcedLimit) bool { return e.By == ByMeasures }) {
		k.meter = &meter{dirs: launch.Disk, limit: int64(launch.Resources.Disk)}
	}
	return k
}

// Resume returns the limits of an attempt whose agent runs already, for a wrapper that replaces the one that
// made them.
func Resume(launch *agency.Launch) (*Kept, error) {
	if len(launch.Limits) == 0 {
		return nil, nil //nolint:nilnil // it has no limits
	}
	k := keep(launch)
	var err error
	k.group, err = openGroup(groups(), launch.AttemptDir, launch.RunID, launch.Attempt, launch.Limits)
	return k, err
}

// Use returns how the limits are enforced, and which were reached so far; nil without limits.
func (k *Kept) Use() *agency.LimitUse {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	use := k.use
	use.Reached = slices.Clone(use.Reached)
	return &use
}

// Look asks the kernel which limits were reached, and reports whether that changed.
func (k *Kept) Look(now time.Time) (changed bool) {
	if k == nil || k.group == nil {
		return false
	}
	for _, name := range counted {
		if n := k.group.count(name); n > 0 {
			changed = k.reached(name, n, now) || changed
		}
	}
	return changed
}

// Add records how often the limits were reached that something else enforced.
func (k *Kept) Add(counts map[agency.LimitName]int64, now time.Time) {
	if k == nil {
		return
	}
	for _, name := range counted {
		if n := counts[name]; n > 0 {
			k.reached(name, n, now)
		}
	}
}

// reached records that a limit was reached n times in all.
func (k *Kept) reached(name agency.LimitName, n int64, now time.Time) (changed bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range k.use.Reached {
		if r := &k.use.Reached[i]; r.Limit == name {
			changed, r.Count = r.Count != n, n
			return changed
		}
	}
	for _, e := range k.use.Enforced {
		if e.Limit == name {
			k.use.Reached = append(k.use.Reached, agency.ReachedLimit{Limit: name, Value: e.Value, At: now, Count: n})
		}
	}
	return true
}

// MeasureDisk measures the folders of the attempt until done is closed, whenever they may have reached their
// limit. It calls over(false) when they first have, and over(true) each time that it finds them larger than
// then by more than a tenth of the limit. Without such a limit it returns at once.
func (k *Kept) MeasureDisk(done <-chan struct{}, now func() time.Time, over func(again bool)) {
	if k == nil || k.meter == nil {
		return
	}
	ticks := time.NewTicker(lookEvery)
	defer ticks.Stop()
	for first := int64(0); ; {
		if used, is := k.meter.over(now()); is {
			k.reached(agency.LimitDisk, 1, now())
			if first == 0 {
				first = used
				over(false)
			} else if used > first+k.meter.limit/10 {
				over(true)
			}
		}
		select {
		case <-ticks.C:
		case <-done:
			return
		}
	}
}

// End removes what Begin made. No process of the attempt may be left.
func (k *Kept) End() error {
	if k == nil || k.group == nil {
		return nil
	}
	return Remove(k.launch.AttemptDir, k.launch.RunID, k.launch.Attempt)
}
