package agency

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Size is a number of bytes. Users write it as 512m, 4g or 4GiB.
type Size int64

// sizeUnits are the units of sizes, the largest first.
const sizeUnits = "tgmk"

// ParseSize reads a size as users write it. The units are powers of 1024.
func ParseSize(text string) (Size, error) {
	if text == NoLimit {
		return Unlimited, nil
	}
	number := strings.ToLower(strings.TrimSpace(text))
	number = strings.TrimSuffix(strings.TrimSuffix(number, "b"), "i")
	factor := int64(1)
	for i, unit := range sizeUnits {
		if before, found := strings.CutSuffix(number, string(unit)); found {
			number, factor = strings.TrimSpace(before), 1<<(10*(len(sizeUnits)-i))
			break
		}
	}
	n, err := strconv.ParseUint(number, 10, 63)
	if err != nil || int64(n) > (1<<62)/factor {
		return 0, fmt.Errorf("%q is not a size such as 512m or 4g", text)
	}
	return Size(int64(n) * factor), nil
}

// String returns the size exactly, in the largest unit that allows it: 4g, 1536m.
func (s Size) String() string {
	if s == Unlimited {
		return NoLimit
	}
	for i, unit := range sizeUnits {
		if factor := Size(1) << (10 * (len(sizeUnits) - i)); s >= factor && s%factor == 0 {
			return strconv.FormatInt(int64(s/factor), 10) + string(unit)
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// UnmarshalJSON reads a number of bytes, or a text as users write it.
func (s *Size) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) != nil {
		return json.Unmarshal(data, (*int64)(s))
	}
	size, err := ParseSize(text)
	if err == nil {
		*s = size
	}
	return err
}

// Resources are how much of the machine an attempt may use. 0 leaves the choice open in what a user
// asks for, and means no limit in the record.
type Resources struct {
	Memory    Size    `json:"memory,omitempty"`     // bytes, of all its processes together, without swap
	Pids      int     `json:"pids,omitempty"`       // processes and threads
	CPUs      float64 `json:"cpus,omitempty"`       // processors: 1.5 is one and a half
	Disk      Size    `json:"disk,omitempty"`       // bytes, of its worktree and of its own repository in a sandbox
	Tmp       Size    `json:"tmp,omitempty"`        // bytes, of each folder in memory that a sandbox has, such as /tmp
	OpenFiles int     `json:"open_files,omitempty"` // of each process
}

// Unlimited is the value of a limit that a user does not want, whatever is configured; NoLimit is
// how users write it.
const (
	Unlimited = -1
	NoLimit   = "none"
)

// LimitName is the name of a limit, as in the configuration.
type LimitName string

// The names of the limits.
const (
	LimitMemory    LimitName = "memory"     // of all its processes together, without swap
	LimitPids      LimitName = "pids"       // processes and threads
	LimitCPUs      LimitName = "cpus"       // processors
	LimitDisk      LimitName = "disk"       // of its worktree and of its own repository in a sandbox
	LimitTmp       LimitName = "tmp"        // of each folder in memory that a sandbox has, such as /tmp
	LimitOpenFiles LimitName = "open_files" // open files of each process
)

// AnyAmount returns resources without limits, whatever is configured.
func AnyAmount() Resources {
	return Resources{Memory: Unlimited, Pids: Unlimited, CPUs: Unlimited, Disk: Unlimited, Tmp: Unlimited, OpenFiles: Unlimited}
}

// LimitNames returns the names of all limits, in the order in which they are shown.
func LimitNames() []LimitName {
	return []LimitName{LimitMemory, LimitPids, LimitCPUs, LimitDisk, LimitTmp, LimitOpenFiles}
}

// Put sets a limit to a value as users write it; an empty value leaves the choice open. The error continues
// a sentence that begins with the limit.
func (r *Resources) Put(name LimitName, text string) error {
	next := *r
	var err error
	if text == "" {
		text = "0"
	}
	switch size, count := map[LimitName]*Size{LimitMemory: &next.Memory, LimitDisk: &next.Disk, LimitTmp: &next.Tmp}[name],
		map[LimitName]*int{LimitPids: &next.Pids, LimitOpenFiles: &next.OpenFiles}[name]; {
	case size != nil:
		*size, err = ParseSize(text)
	case text == NoLimit && count != nil:
		*count = Unlimited
	case text == NoLimit:
		next.CPUs = Unlimited
	case count != nil:
		*count, err = strconv.Atoi(text)
	default:
		next.CPUs, err = strconv.ParseFloat(text, 64)
	}
	if err == nil {
		err = next.Check()
	}
	if err != nil {
		return fmt.Errorf("must be a %s or %s, not %q", map[LimitName]string{
			LimitMemory: "size from 16m, such as 4g", LimitDisk: "size from 1m, such as 10g", LimitTmp: "size from 1m, such as 1g",
			LimitPids: "number from 8, such as 512", LimitCPUs: "number from 0.01, such as 2 or 1.5", LimitOpenFiles: "number from 16, such as 1024",
		}[name], NoLimit, text)
	}
	*r = next
	return nil
}

// Limit is one limit.
type Limit struct {
	Name  LimitName
	Value float64
	Text  string // the value as users write it
}

// The least values of limits with which programs still start.
const (
	leastMemory    = 16 << 20
	leastPids      = 8
	leastCPUs      = 0.01
	leastDisk      = 1 << 20
	leastOpenFiles = 16
)

// all returns all limits, in the order in which they are shown.
func (r Resources) all() []struct {
	Limit
	least float64
} {
	count := func(n int) string {
		if n == Unlimited {
			return NoLimit
		}
		return strconv.Itoa(n)
	}
	cpus := strconv.FormatFloat(r.CPUs, 'g', -1, 64)
	if r.CPUs == Unlimited {
		cpus = NoLimit
	}
	return []struct {
		Limit
		least float64
	}{
		{Limit{LimitMemory, float64(r.Memory), r.Memory.String()}, leastMemory},
		{Limit{LimitPids, float64(r.Pids), count(r.Pids)}, leastPids},
		{Limit{LimitCPUs, r.CPUs, cpus}, leastCPUs},
		{Limit{LimitDisk, float64(r.Disk), r.Disk.String()}, leastDisk},
		{Limit{LimitTmp, float64(r.Tmp), r.Tmp.String()}, leastDisk},
		{Limit{LimitOpenFiles, float64(r.OpenFiles), count(r.OpenFiles)}, leastOpenFiles},
	}
}

// Set returns the limits that are set to a value, in the order in which they are shown.
func (r Resources) Set() []Limit {
	set := []Limit{}
	for _, one := range r.all() {
		if one.Value > 0 {
			set = append(set, one.Limit)
		}
	}
	return set
}

// Text returns a limit as users write it; empty when it is open.
func (r Resources) Text(name LimitName) string {
	for _, one := range r.all() {
		if one.Name == name && one.Value != 0 {
			return one.Text
		}
	}
	return ""
}

// String returns the limits as users see them, such as "memory 4g, pids 512"; empty without any.
func (r Resources) String() string {
	words := []string{}
	for _, one := range r.Set() {
		words = append(words, string(one.Name)+" "+one.Text)
	}
	return strings.Join(words, ", ")
}

// Check returns E_SPEC_INVALID for a limit with which no program would start.
func (r Resources) Check() error {
	for _, one := range r.all() {
		if one.Value != 0 && one.Value != Unlimited && (one.Value < one.least || one.Value > 1<<62) {
			least := strconv.FormatFloat(one.least, 'g', -1, 64)
			if one.Name == LimitMemory || one.Name == LimitDisk || one.Name == LimitTmp {
				least = Size(one.least).String()
			}
			return Errorf(CodeSpecInvalid, "the limit %s is %s, and the least is %s", one.Name, one.Text, least).
				WithHint("0 leaves it as configured, and none means no limit")
		}
	}
	return nil
}

// Or returns the limits with those that are open taken from others.
func (r Resources) Or(other Resources) Resources {
	return r.with(other, func(own, other float64) bool { return own == 0 && other != 0 })
}

// Tighter returns the smaller one of each limit.
func (r Resources) Tighter(than Resources) Resources {
	return r.with(than, func(own, other float64) bool { return other > 0 && (own <= 0 || other < own) })
}

// with returns the limits with those of others for which takes returns true.
func (r Resources) with(other Resources, takes func(own, other float64) bool) Resources {
	if takes(float64(r.Memory), float64(other.Memory)) {
		r.Memory = other.Memory
	}
	if takes(float64(r.Pids), float64(other.Pids)) {
		r.Pids = other.Pids
	}
	if takes(r.CPUs, other.CPUs) {
		r.CPUs = other.CPUs
	}
	if takes(float64(r.Disk), float64(other.Disk)) {
		r.Disk = other.Disk
	}
	if takes(float64(r.Tmp), float64(other.Tmp)) {
		r.Tmp = other.Tmp
	}
	if takes(float64(r.OpenFiles), float64(other.OpenFiles)) {
		r.OpenFiles = other.OpenFiles
	}
	return r
}

// Final returns the limits as the record has them: without those that are not wanted.
func (r Resources) Final() Resources {
	r.Memory, r.Pids, r.CPUs = max(r.Memory, 0), max(r.Pids, 0), max(r.CPUs, 0)
	r.Disk, r.Tmp, r.OpenFiles = max(r.Disk, 0), max(r.Tmp, 0), max(r.OpenFiles, 0)
	return r
}

// LimitUse is how the limits of an attempt are enforced, and which of them it reached.
type LimitUse struct {
	Enforced []EnforcedLimit `json:"enforced"` // each limit, and what enforces it
	Reached  []ReachedLimit  `json:"reached"`  // each limit once, in the order in which it reached them; never null
}

// EnforcedLimit is a limit and what enforces it.
type EnforcedLimit struct {
	Limit LimitName `json:"limit"` // its name
	Value string    `json:"value"` // as users write it
	By    string    `json:"by"`    // what enforces it, such as "cgroup v2"
}

// ReachedLimit is a limit that an attempt reached.
type ReachedLimit struct {
	Limit LimitName `json:"limit"` // its name
	Value string    `json:"value"` // as users write it
	At    time.Time `json:"at"`    // when it was first seen
	Count int64     `json:"count"` // how often, as the kernel counts
}

// String returns the cause that users see, such as "out of memory: limit 4g".
func (r ReachedLimit) String() string {
	words, known := map[LimitName]string{
		LimitMemory: "out of memory", LimitPids: "out of processes", LimitDisk: "out of disk space", LimitTmp: "out of space in /tmp",
		LimitOpenFiles: "out of open files",
	}[r.Limit]
	if !known {
		words = string(r.Limit)
	}
	return words + ": limit " + r.Value
}

// Cause returns the reached limit that explains the failure of an attempt; nil when none does.
// The kernel kills a program that has no more memory, and agency ends an attempt whose disk is full. A
// program learns of all other limits by errors, and may continue without what it asked for.
func (u *LimitUse) Cause(by EndedBy) *ReachedLimit {
	if u == nil {
		return nil
	}
	for i := range u.Reached {
		if r := &u.Reached[i]; r.Limit == LimitMemory || r.Limit == LimitDisk && by == EndedByLimit {
			return r
		}
	}
	return nil
}
