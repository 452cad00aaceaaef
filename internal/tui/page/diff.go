package page

import "agency/internal/api"

// FileBytes is how much of the patch of one file is read.
const FileBytes = 1 << 20

// NextDiffBase returns what the work of a run is compared with after another base, around the end.
func NextDiffBase(base string) string {
	switch base {
	case api.DiffFromBase:
		return api.DiffFromLastTurn
	case api.DiffFromLastTurn:
		return api.DiffFromTarget
	default:
		return api.DiffFromBase
	}
}
