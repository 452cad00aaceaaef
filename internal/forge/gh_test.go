package forge_test

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"agency"
	"agency/internal/forge"
	fake "agency/test/forge"
)

// gitHub is GitHub as the real gh reaches it, over a Unix socket, without a network.
type gitHub struct {
	*bench

	mu    sync.Mutex
	state *fake.State
	token string   // of the newest request
	asked []string // the requests
	env   []string // of a user whose gh reaches it
}

func newGitHub(t *testing.T) *gitHub {
	t.Helper()
	if _, err := exec.LookPath("gh"); err != nil {
		t.Skip("gh is not installed: make deps TOOLS=gh")
	}
	g := &gitHub{bench: newBench(t)}
	dir, err := os.MkdirTemp("", "gh") // short, as a socket wants it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	if err := os.WriteFile(filepath.Join(dir, "config.yml"), []byte("http_unix_socket: "+socket+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if g.state, err = fake.Open(filepath.Join(dir, "state.json"), g.bare); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(g.serve)}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "GH_") && !strings.HasPrefix(variable, "GITHUB_") {
			g.env = append(g.env, variable)
		}
	}
	g.env = append(g.env, "GH_CONFIG_DIR="+dir, "HOME="+dir)
	return g
}

func (g *gitHub) serve(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	g.token = r.Header.Get("Authorization")
	g.asked = append(g.asked, r.Method+" "+r.URL.EscapedPath())
	status, answer := g.state.Serve(r.Method, r.URL.EscapedPath(), body)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer)
}

// log returns the token of the newest request, and the requests since the last call.
func (g *gitHub) log() (token string, asked []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	asked, g.asked = g.asked, nil
	return g.token, asked
}

func (g *gitHub) fail(how string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.state.Fail = how
}

// open returns the forge, as a user with some more variables reaches it.
func (g *gitHub) open(more ...string) forge.Forge {
	g.t.Helper()
	place := forge.Place{CommonDir: filepath.Join(g.repo, ".git"), Remote: "origin", URL: "git@github.com:me/app.git"}
	remote, err := forge.Open(g.t.Context(), place, g.t.TempDir(), append(g.env, more...))
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { _ = remote.Close() })
	site, err := remote.Site(g.t.Context(), agency.ForgeAuto)
	if err != nil {
		g.t.Fatal(err)
	}
	f, err := remote.Forge(site)
	if err != nil {
		g.t.Fatal(err)
	}
	return f
}

// The life of a pull request, by the gh of the user: draft, ready, commented, merged.
func TestPullRequestByRealGH(t *testing.T) {
	g := newGitHub(t)
	ctx, f := t.Context(), g.open("GH_TOKEN=secret")
	if err := g.push(ctx); err != nil {
		t.Fatal(err)
	}
	state := func(want agency.PRState) *forge.PR {
		t.Helper()
		prs, err := f.Find(ctx, "work")
		if err != nil || len(prs) != 1 || prs[0].State != want || prs[0].Commit != g.first || prs[0].Base != "main" {
			t.Fatalf("%+v, %v", prs, err)
		}
		return &prs[0]
	}
	text := "line\n\n<!-- agency: 1 -->"
	if err := f.Create(ctx, forge.NewPR{Branch: "work", Base: "main", Title: "@title \"quoted\"", Body: text, Draft: true}); err != nil {
		t.Fatal(err)
	}
	pr := state(agency.PRDraft)
	if token, _ := g.log(); pr.Body != text || token != "token secret" {
		t.Errorf("the text %q, by %q", pr.Body, token)
	}
	if err := f.Ready(ctx, pr); err != nil {
		t.Fatal(err)
	}
	state(agency.PROpen)
	if comments, more, err := f.Comments(ctx, pr); err != nil || more || len(comments) != 1 || comments[0].Body != "please mend it" {
		t.Errorf("%+v, %v, %v", comments, more, err)
	}
	if err := f.Merge(ctx, pr, agency.LandSquash, g.other); !agency.IsCode(err, agency.CodeSourceMoved) {
		t.Errorf("merged at another commit: %v", err)
	}
	if err := f.Merge(ctx, pr, agency.LandSquash, g.first); err != nil {
		t.Fatal(err)
	}
	state(agency.PRMerged)
}

// What gh and the forge refuse has its code, and their words reach no terminal raw.
func TestRefusalsOfRealGH(t *testing.T) {
	g := newGitHub(t)
	ctx := t.Context()
	if _, err := g.open().Find(ctx, "work"); !agency.IsCode(err, agency.CodeForgeAuth) {
		t.Errorf("without a login: %v", err)
	}
	if _, asked := g.log(); len(asked) > 0 {
		t.Errorf("without a login gh asked %q", asked)
	}
	f := g.open("GH_TOKEN=secret")
	g.fail("login")
	if _, err := f.Find(ctx, "work"); !agency.IsCode(err, agency.CodeForgeAuth) {
		t.Errorf("with a login that does not count: %v", err)
	}
	g.fail("words")
	err := f.Create(ctx, forge.NewPR{Branch: "work", Base: "main", Title: "T"})
	if !agency.IsCode(err, agency.CodeForgeFailed) || !strings.Contains(err.Error(), "no commits") || strings.ContainsAny(err.Error(), "\x1b\a\r") {
		t.Errorf("%q", err)
	}
	g.fail("")
	if err := f.Create(ctx, forge.NewPR{Branch: "work", Base: "main", Title: "T"}); err != nil {
		t.Fatal(err)
	}
	if err := f.Create(ctx, forge.NewPR{Branch: "work", Base: "main", Title: "T"}); !agency.IsCode(err, agency.CodeForgeFailed) {
		t.Errorf("a second one of the branch: %v", err)
	}
}
