package runner

// ParseStat returns pid, parent and start of a stat line.
func ParseStat(line []byte) (pid, ppid int, start uint64, zombie bool, err error) {
	p, err := parseStat(line)
	return p.pid, p.ppid, p.start, p.zombie, err
}
