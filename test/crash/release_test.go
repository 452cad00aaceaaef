package crash_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A program that is built without the tag contains no kill point, and one with it contains all of
// them.
func TestRelease(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "agency")
	if err := build(path); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]bool{path: false, filepath.Join(bin, "agency"): true} {
		program, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"AGENCY_KILLPOINT", "create.inserted", "wrapper.launched", "remove.saved"} {
			if got := bytes.Contains(program, []byte(text)); got != want {
				t.Errorf("%s contains %q: %v", file, text, got)
			}
		}
	}
}

// The matrix has the points of the code, and docs/crash-tests.md names each.
func TestPoints(t *testing.T) {
	t.Parallel()
	used := slices.Concat([]string{"scheduler.changed", "settle.unseen", "queue.look"}, sessionPoints, removePoints, restorePoints, verifyPoints, commentPoints, forgePoints, queuePoints, landPoints, conflictPoints, beginPoints, containerPoints)
	for _, op := range append(operations(), landingOperations()...) {
		used = append(used, op.points...)
	}
	slices.Sort(used)
	used = slices.Compact(used)
	doc, err := os.ReadFile("../../docs/crash-tests.md")
	if err != nil {
		t.Fatal(err)
	}
	call := regexp.MustCompile(`killpoint\.At\(([^)]*)\)`)
	inCode := map[string]bool{}
	files, err := filepath.Glob("../../internal/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	nested, err := filepath.Glob("../../internal/*/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(files, nested...) {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range call.FindAllSubmatch(source, -1) {
			place := strings.ReplaceAll(strings.ReplaceAll(string(m[1]), `", "`, "."), `"`, "")
			place = strings.ReplaceAll(strings.ReplaceAll(place, ", step.name, ", ".STEP."), ", ", ".")
			if place == "of.started" { // of the program that a setup or a check runs
				inCode["setup.started"], inCode["check.started"] = true, true
				continue
			}
			inCode[place] = true
		}
	}
	step := regexp.MustCompile(`^(create|resume)\.[a-z]+\.(made|recorded)$`)
	seen := map[string]bool{}
	for _, point := range used {
		coded := step.ReplaceAllString(point, "of.STEP.$2") // one for the steps of both
		seen[coded] = true
		if !inCode[coded] {
			t.Errorf("the matrix has a point %s that is not in the code", point)
		}
		general := step.ReplaceAllString(point, "$1.STEP.$2")
		if !bytes.Contains(doc, []byte("`"+general+"`")) {
			t.Errorf("docs/crash-tests.md does not name %s", general)
		}
	}
	for point := range inCode {
		if !seen[point] {
			t.Errorf("the code has a point %s that is not in the matrix", point)
		}
	}
}
