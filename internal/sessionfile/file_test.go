package sessionfile_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"agency"
	"agency/internal/sessionfile"
)

// python writes a document as the executors of this file format do.
const python = `import json, sys
sys.stdout.buffer.write(json.dumps(json.loads(sys.stdin.buffer.read()), indent=2, ensure_ascii=False).encode())`

// dumps returns what Python makes of a document, or false without Python.
func dumps(t *testing.T, document []byte) ([]byte, bool) {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err != nil {
		return nil, false
	}
	cmd := exec.Command(path, "-c", python)
	cmd.Stdin = bytes.NewReader(document)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return out, true
}

func decoded(t *testing.T, document []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(document, &v); err != nil {
		t.Fatalf("%v in %s", err, document)
	}
	return v
}

// The partial documents of other executors keep their meaning when agency reads and writes them,
// and have the form that Python would write. The same holds for documents that were a record in
// between.
func TestSessionFileExamples(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/*.json")
	if err != nil || len(paths) != 5 {
		t.Fatalf("documents %v, %v", paths, err)
	}
	for _, path := range paths {
		document, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		f, err := sessionfile.Parse(document)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		written := f.Encode()
		if !reflect.DeepEqual(decoded(t, document), decoded(t, written)) {
			t.Errorf("%s means something else now:\n%s", path, written)
		}
		if want, ok := dumps(t, written); ok && !bytes.Equal(want, written) {
			t.Errorf("%s is written\n%s\nwant\n%s", path, written, want)
		}
		golden, err := os.ReadFile(strings.TrimSuffix(path, ".json") + ".golden") // as Python wrote it, with known members in the order of the schema
		if err != nil || !bytes.Equal(golden, written) {
			t.Errorf("%s is written\n%s\nwant\n%s (%v)", path, written, golden, err)
		}
		agents := make([]agency.SessionAgent, len(f.Agents))
		for i := range f.Agents {
			if agents[i], err = sessionfile.ParseAgent(f.Agents[i]); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
		}
		session := agency.Session{Status: agency.SessionRunning}
		if err := sessionfile.Import(&session, f.Head, agents, time.Now()); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		for i := range agents {
			f.Agents[i] = sessionfile.AgentObject(&agents[i])
		}
		id := f.Head.Get("session_id")
		was := f.Head
		f.Head = sessionfile.Head(&session, sessionfile.Waves(agents))
		f.Head.Set("session_id", id)
		for _, member := range []string{"source", "source_file", "started_at", "completed_at"} {
			if was.Get(member) == nil {
				f.Head = slices.DeleteFunc(f.Head, func(m sessionfile.Member) bool { return m.Name == member })
			}
		}
		if again := f.Encode(); !bytes.Equal(again, written) {
			t.Errorf("%s as a record is written\n%s\nwant\n%s", path, again, written)
		}
	}
}

// ownFile is the status file of a session of agency's own, with an agent that failed and one that
// waits.
const ownFile = `{
  "schema_version": "1.0",
  "session_id": "20260201-143022-abc12345",
  "source": "orchestrate",
  "source_file": "plans/naïve <&> ` + "\u2028" + `.yaml",
  "started_at": "2026-02-01T14:30:22Z",
  "completed_at": null,
  "status": "running",
  "agents": [
    {
      "id": "001",
      "name": "a",
      "prompt_path": "p/001.md",
      "status": "failed",
      "wave": 1,
      "started_at": "2026-02-01T14:30:22Z",
      "completed_at": "2026-02-01T14:30:33Z",
      "duration_seconds": 11,
      "exit_code": 1,
      "pid": null,
      "log_file": "x/001.log",
      "model": "claude",
      "error": "line\none \u001b\""
    },
    {
      "id": "002",
      "name": "b",
      "prompt_path": "",
      "status": "queued",
      "wave": 2,
      "started_at": null,
      "completed_at": null,
      "duration_seconds": null,
      "exit_code": null,
      "pid": null,
      "log_file": "x/002.log",
      "model": "",
      "error": null
    }
  ],
  "summary": {
    "total": 2,
    "queued": 1,
    "running": 0,
    "complete": 0,
    "failed": 1,
    "cancelled": 0
  },
  "waves": [
    {
      "wave": 1,
      "status": "complete",
      "agents": [
        "001"
      ]
    },
    {
      "wave": 2,
      "status": "pending",
      "agents": [
        "002"
      ]
    }
  ],
  "x": [
    1,
    {}
  ]
}`

// A file of agency's own sessions has every member of the schema, in its order, with times in UTC
// and whole seconds.
func TestSessionFileOfRecord(t *testing.T) {
	t.Parallel()
	begun := time.Date(2026, 2, 1, 15, 30, 22, 900_000_000, time.FixedZone("", 3600))
	s := agency.Session{
		ID: agency.NewSessionID(begun, [4]byte{0xab, 0xc1, 0x23, 0x45}), Source: "orchestrate", SourceFile: "plans/naïve <&> \u2028.yaml",
		Status: agency.SessionRunning, StartedAt: begun, Counts: agency.Counts{Total: 2, Queued: 1, Failed: 1}, Extra: json.RawMessage(`{"x":[1,{}]}`),
	}
	agents := []agency.SessionAgent{
		{
			ID: "001", Name: "a", PromptPath: "p/001.md", Status: agency.AgentFailed, Wave: 1, StartedAt: new(begun), CompletedAt: new(begun.Add(10200 * time.Millisecond)),
			ExitCode: new(1), LogFile: "x/001.log", Model: "claude", Error: "line\none \x1b\"",
		},
		{ID: "002", Name: "b", Status: agency.AgentQueued, Wave: 2, LogFile: "x/002.log"},
	}
	f := sessionfile.File{Head: sessionfile.Head(&s, sessionfile.Waves(agents)), Agents: []sessionfile.Object{sessionfile.AgentObject(&agents[0]), sessionfile.AgentObject(&agents[1])}}
	if got := string(f.Encode()); got != ownFile {
		t.Errorf("got\n%s\nwant\n%s", got, ownFile)
	}
}

// A valid document keeps its meaning when it is read and written, and writing it again changes
// nothing.
func FuzzSessionFile(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"agents": []}`, `{"agents": [{"id": "1", "x": {"y": [ ] , "z":{ } }}], "a\u0062\/\ud83d\ude00\ud800": "\ud800\udbff\udc00\u0000é\\u"}`,
		`{"b": 1e5, "a": [-0, 1.50, true, [[[]]]], "status": null, "b": 2}`, "{\"k\": \"\x7f\u2028\"}",
	} {
		f.Add([]byte(seed))
	}
	if paths, err := filepath.Glob("testdata/*.json"); err == nil {
		for _, path := range paths {
			if document, err := os.ReadFile(path); err == nil {
				f.Add(document)
			}
		}
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		parsed, err := sessionfile.Parse(document)
		if err != nil {
			return
		}
		written := parsed.Encode()
		if was, is := decoded(t, document), decoded(t, written); !reflect.DeepEqual(was, is) {
			t.Fatalf("%q means something else: %q", document, written)
		}
		again, err := sessionfile.Parse(written)
		if err != nil || !bytes.Equal(again.Encode(), written) {
			t.Fatalf("%q is written again as %q, %v", written, again.Encode(), err)
		}
		for _, o := range parsed.Agents {
			a, err := sessionfile.ParseAgent(o)
			if err != nil {
				continue
			}
			same, err := sessionfile.ParseAgent(sessionfile.AgentObject(&a))
			if err != nil || !bytes.Equal(sessionfile.EncodeAgent(sessionfile.AgentObject(&same)), sessionfile.EncodeAgent(sessionfile.AgentObject(&a))) {
				t.Fatalf("%s is read again as %s, %v", sessionfile.EncodeAgent(sessionfile.AgentObject(&a)), sessionfile.EncodeAgent(sessionfile.AgentObject(&same)), err)
			}
		}
	})
}

// For any text, Python writes the same bytes.
func TestSessionFileLikePython(t *testing.T) {
	t.Parallel()
	if _, ok := dumps(t, []byte(`{}`)); !ok {
		return // the golden files cover it
	}
	var all []any
	rapid.Check(t, func(t *rapid.T) { // one process for all of them: it takes long to start
		value := rapid.Deferred(func() *rapid.Generator[any] { return anyValue(3) }).Draw(t, "value")
		all = append(all, value)
	})
	document, err := json.Marshal(map[string]any{"all": all})
	if err != nil {
		t.Fatal(err)
	}
	f, err := sessionfile.Parse(document)
	if err != nil {
		t.Fatal(err)
	}
	if want, _ := dumps(t, document); !bytes.Equal(f.Encode(), want) {
		t.Errorf("got\n%s\nwant\n%s", f.Encode(), want)
	}
}

func anyValue(depth int) *rapid.Generator[any] {
	kinds := []*rapid.Generator[any]{rapid.String().AsAny(), rapid.Int().AsAny(), rapid.Bool().AsAny(), rapid.Just[any](nil)}
	if depth > 0 {
		kinds = append(kinds, rapid.SliceOfN(anyValue(depth-1), 0, 3).AsAny(), rapid.MapOfN(rapid.String(), anyValue(depth-1), 0, 3).AsAny())
	}
	return rapid.OneOf(kinds...)
}

// A session keeps everything of a status file, in its record and in its own file: unknown members
// of the session and of its waves, waves without agents, and how and when it ended.
func TestSessionTakesFile(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 2, 1, 15, 0, 0, 0, time.UTC)
	take := func(document string) (*agency.Session, string, error) {
		f, err := sessionfile.Parse([]byte(document))
		if err != nil {
			t.Fatalf("%s: %v", document, err)
		}
		agents := make([]agency.SessionAgent, len(f.Agents))
		for i := range f.Agents {
			if agents[i], err = sessionfile.ParseAgent(f.Agents[i]); err != nil {
				t.Fatalf("%s: %v", document, err)
			}
		}
		s := &agency.Session{Status: agency.SessionRunning}
		err = sessionfile.Import(s, f.Head, agents, now)
		var line bytes.Buffer
		written := sessionfile.File{Head: sessionfile.Head(s, sessionfile.Waves(agents))}
		if err := json.Compact(&line, written.Encode()); err != nil {
			t.Fatal(err)
		}
		return s, line.String(), err
	}
	const ended = `{"id": "1", "status": "complete"}`
	for document, want := range map[string]string{
		`{"team": "blue", "agents": [{"id": "1"}, {"id": "2"}], "waves": [{"wave": 5, "agents": [], "status": "later"},
			{"wave": 1, "title": "first", "agents": ["1"]}, {"wave": 2, "agents": ["2"]}, {"x": 1, "wave": 4}]}`: `"waves":[{"wave":1,"status":"pending","agents":["1"],` +
			`"title":"first"},{"wave":2,"status":"pending","agents":["2"]},{"x":1,"wave":4},{"wave":5,"agents":[],"status":"later"}],"team":"blue"}`,
		`{"agents": [{"id": "1", "wave": 1}], "waves": [{"wave": 1, "title": "first"}]}`:                     `"waves":[{"wave":1,"status":"pending","agents":["1"],"title":"first"}]}`,
		`{"agents": [` + ended + `], "status": "cancelled", "completed_at": "2026-02-01T14:00:00"}`:          `"started_at":"2026-02-01T14:00:00Z","completed_at":"2026-02-01T14:00:00Z","status":"cancelled"`,
		`{"agents": [` + ended + `], "status": "running", "started_at": "2026-02-01T14:00:00Z"}`:             `"started_at":"2026-02-01T14:00:00Z","completed_at":"2026-02-01T15:00:00Z","status":"complete"`,
		`{"agents": [{"id": "1"}], "status": "running", "source": null, "waves": null, "summary": {"x": 1}}`: `"started_at":"2026-02-01T15:00:00Z","completed_at":null,"status":"running"`,
	} {
		if _, got, err := take(document); err != nil || !strings.Contains(got, want) {
			t.Errorf("%s is %s, %v\nwant %s", document, got, err, want)
		}
	}
	for document, want := range map[string]string{
		`{"agents": [` + ended + `], "status": "failed"}`:                                                           "status is failed, and by its agents it is complete",
		`{"agents": [{"id": "1"}], "status": "cancelled"}`:                                                          "status is cancelled, and by its agents it is running",
		`{"agents": [{"id": "1"}], "status": "done"}`:                                                               "status is none of running",
		`{"agents": [{"id": "1"}], "schema_version": "2.0"}`:                                                        "schema_version is not 1.0",
		`{"agents": [{"id": "1"}], "source": 7}`:                                                                    "source is not a string",
		`{"agents": [{"id": "1"}], "completed_at": "2026-02-01T14:00:00Z"}`:                                         "completed_at is given",
		`{"agents": [` + ended + `], "started_at": "2026-02-02", "waves": []}`:                                      "started_at is not a time",
		`{"agents": [` + ended + `], "started_at": "2026-02-02T00:00:00Z", "completed_at": "2026-02-01T00:00:00Z"}`: "completed_at is before started_at",
		`{"agents": [{"id": "1"}], "waves": "x"}`:                                                                   "waves is not an array",
		`{"agents": [{"id": "1"}], "waves": ["x"]}`:                                                                 "waves[0]: it is not a JSON object",
		`{"agents": [{"id": "1"}], "waves": [{"wave": "x"}]}`:                                                       "waves[0]: wave is not a number from 1",
		`{"agents": [{"id": "1"}], "waves": [{"wave": 1}, {"wave": 1}]}`:                                            "waves[1]: wave is not a number from 1",
		`{"agents": [{"id": "1"}], "waves": [{"wave": 1, "agents": "1"}]}`:                                          "waves[0]: agents is not an array of ids",
		`{"agents": [{"id": "1"}], "waves": [{"wave": 1, "agents": ["2"]}]}`:                                        `wave 1 has agent "2", which is in no such wave`,
		`{"agents": [{"id": "1"}], "x": "` + strings.Repeat("x", agency.ExternalExtraLimit) + `"}`:                  "unknown members of the session have more than",
	} {
		_, _, err := take(document)
		if !agency.IsCode(err, agency.CodeUsage) || agency.AsError(err).Hint == "" || !strings.Contains(err.Error(), want) {
			t.Errorf("%.90s: %v, want %s", document, err, want)
		}
	}
}

func TestSessionFileRefusals(t *testing.T) {
	t.Parallel()
	for _, document := range []string{``, `[]`, `{"agents": {}}`, `{"agents": null}`, `{"agents": [1]}`, `{} {}`, `{`, "{\"a\": \"\xff\"}"} {
		if _, err := sessionfile.Parse([]byte(document)); !agency.IsCode(err, agency.CodeUsage) {
			t.Errorf("%q: %v", document, err)
		}
	}
	for _, agent := range []string{
		`{}`, `{"id": ""}`, `{"id": 1}`, `{"id": "../x"}`, `{"id": "1", "status": "done"}`, `{"id": "1", "wave": 1.5}`, `{"id": "1", "wave": -1}`,
		`{"id": "1", "started_at": "now"}`, `{"id": "1", "error": {}}`, `{"id": "1", "name": "` + strings.Repeat("x", agency.ExternalTextLimit+1) + `"}`,
		`{"id": "1", "x": "` + strings.Repeat("x", agency.ExternalExtraLimit) + `"}`, `{"id": "1", "name": "\u0000"}`,
	} {
		o, err := sessionfile.ParseObject([]byte(agent))
		if err != nil {
			t.Fatal(err)
		}
		_, err = sessionfile.ParseAgent(o)
		if !agency.IsCode(err, agency.CodeUsage) || agency.AsError(err).Hint == "" {
			t.Errorf("%.40q: %v", agent, err)
		}
	}
}
