package agency_test

import (
	"encoding/json"
	"testing"

	"agency"
)

func TestSizes(t *testing.T) {
	for text, want := range map[string]string{"4g": "4g", "4GiB": "4g", "1536m": "1536m", "1024K": "1m", "512": "512", " 2 t ": "2t", "none": "none"} {
		size, err := agency.ParseSize(text)
		if err != nil || size.String() != want {
			t.Errorf("%q is %s, %v; want %s", text, size, err, want)
		}
	}
	for _, text := range []string{"", "g", "-1", "1.5g", "4x", "9999999999t"} {
		if size, err := agency.ParseSize(text); err == nil {
			t.Errorf("%q is %s, want an error", text, size)
		}
	}
}

func TestResources(t *testing.T) {
	var asked agency.Resources
	if err := json.Unmarshal([]byte(`{"memory": "4g", "pids": 512, "cpus": 1.5, "disk": 1048576, "tmp": "none"}`), &asked); err != nil {
		t.Fatal(err)
	}
	// What a user asks for counts, what it leaves open is the tighter of two configurations.
	configured := agency.Resources{Memory: 1 << 30, Tmp: 1 << 30, OpenFiles: 1024}.Tighter(agency.Resources{OpenFiles: 512, Tmp: 1 << 20})
	got := asked.Or(configured).Final()
	if want := "memory 4g, pids 512, cpus 1.5, disk 1m, open_files 512"; got.String() != want {
		t.Errorf("the limits are %q, want %q", got, want)
	}
	if err := got.Check(); err != nil {
		t.Error(err)
	}
	for _, bad := range []agency.Resources{{Memory: 1 << 20}, {Pids: 2}, {CPUs: 0.001}, {Disk: 1}, {Tmp: -2}, {OpenFiles: 3}} {
		if err := bad.Check(); !agency.IsCode(err, agency.CodeSpecInvalid) {
			t.Errorf("%+v is %v, want %s", bad, err, agency.CodeSpecInvalid)
		}
	}
}

// A killed process is told as what it is, and only by the limit that ended it.
func TestCauseOfAnEnd(t *testing.T) {
	use := &agency.LimitUse{Reached: []agency.ReachedLimit{{Limit: agency.LimitPids, Value: "20"}, {Limit: agency.LimitMemory, Value: "4g"}}}
	exit := agency.Exit{ExitCode: 137, EndedBy: agency.EndedByRunner, Limits: use}
	if code, words := exit.Failure(); code != agency.CodeLimitReached || words != "out of memory: limit 4g" {
		t.Errorf("the failure is %s %q", code, words)
	}
	exit.Limits = &agency.LimitUse{Reached: use.Reached[:1]}
	if code, words := exit.Failure(); code != "" || words != "exit 137" {
		t.Errorf("the failure is %s %q", code, words)
	}
}
