package agency_test

import (
	"testing"

	"pgregory.net/rapid"

	"agency"
)

// A disk counts as low until it has a quarter more than it needs: between the two nothing changes.
func TestDiskLow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := agency.Disk{Free: rapid.Int64Range(0, 4<<30).Draw(t, "free"), Least: rapid.Int64Range(0, 2<<30).Draw(t, "least")}
		switch {
		case d.Free < d.Least:
			if !d.Low(false) || !d.Low(true) {
				t.Error("it is not low")
			}
		case d.Free >= d.Least+d.Least/4:
			if d.Low(false) || d.Low(true) {
				t.Error("it is low")
			}
		default:
			if d.Low(false) || !d.Low(true) {
				t.Error("it did not stay as it was")
			}
		}
	})
}
