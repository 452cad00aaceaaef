package git

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"agency"
)

// Snapshots lists the snapshots of a run, oldest first.
func (g *Trees) Snapshots(ctx context.Context, repo agency.Repo, id agency.RunID) ([]agency.Snapshot, error) {
	const format = "%(refname)%00%(objectname)%00%(committerdate:unix)%00%(contents:subject)"
	prefix := agency.SnapshotRefs(id)
	out, err := g.run(ctx, repo, "for-each-ref", "--sort=version:refname", "--format="+format, prefix)
	if err != nil {
		return nil, fmt.Errorf("list snapshots of %s: %w", id, err)
	}
	return parseSnapshots(out, prefix), nil
}

// parseSnapshots reads the lines of for-each-ref. Refs that agency did not make are left out.
func parseSnapshots(out, prefix string) []agency.Snapshot {
	snapshots := []agency.Snapshot{}
	for line := range strings.Lines(out) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\x00")
		if len(fields) != 4 {
			continue
		}
		number, err := strconv.Atoi(strings.TrimPrefix(fields[0], prefix))
		seconds, timeErr := strconv.ParseInt(fields[2], 10, 64)
		if err != nil || timeErr != nil || number < 1 || fields[0] != prefix+strconv.Itoa(number) {
			continue
		}
		snapshots = append(snapshots, agency.Snapshot{
			Number: number, Ref: fields[0], Commit: fields[1], At: time.Unix(seconds, 0).UTC(), Message: fields[3],
		})
	}
	return snapshots
}
