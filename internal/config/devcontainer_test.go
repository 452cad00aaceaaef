package config_test

import (
	"strings"
	"testing"

	"agency"
	"agency/internal/config"
)

func TestDevcontainer(t *testing.T) {
	t.Parallel()
	got, err := config.ParseDevcontainer("d.json", []byte(`// The // of a URL is no comment.
{ /* two
lines */ "name": "http://x, }", "build": {"dockerfile": "Dockerfile", "context": "..", "args": {"A": "1",},}, "features": {"x": {}}, }`))
	if err != nil {
		t.Fatal(err)
	}
	if got.Dockerfile != ".devcontainer/Dockerfile" || got.Context != "." || got.Args["A"] != "1" || got.Image != "" || len(got.Ignored) != 1 {
		t.Errorf("got %+v", got)
	}
	if got, err = config.ParseDevcontainer("d.json", []byte(`{"image": "debian:12"}`)); err != nil || got.Image != "debian:12" {
		t.Errorf("got %+v, %v", got, err)
	}
	for data, want := range map[string]string{
		"{\n \"image\": 1}":              "d.json:2:12: ",
		`{"image": "a"`:                  "d.json:1:",
		`{"image": "-v"}`:                "must be the name of an image",
		`{}`:                             "neither image nor build.dockerfile",
		`{"image": "${localEnv:IMAGE}"}`: "does not replace variables",
		`{"dockerComposeFile": "x.yml", "image": "a"}`:                   "dockerComposeFile",
		`{"build": {"dockerfile": "../../etc/passwd"}}`:                  "must be in the repository",
		`{"build": {"dockerfile": "/etc/passwd"}}`:                       "must be in the repository",
		`{"build": {"dockerfile": "Dockerfile", "context": "../../.."}}`: "must be in the repository",
	} {
		_, err := config.ParseDevcontainer("d.json", []byte(data))
		if !agency.IsCode(err, agency.CodeConfigInvalid) || !strings.Contains(err.Error(), want) || agency.AsError(err).Hint == "" {
			t.Errorf("%s: got %v, want %q", data, err, want)
		}
	}
}

func TestPorts(t *testing.T) {
	t.Parallel()
	p, err := config.ParseProject("agency.toml", []byte("[sandbox]\nports = [3000, 8080]\n"))
	if err != nil || len(p.Ports) != 2 || p.Ports[1] != 8080 {
		t.Errorf("got %v, %v", p.Ports, err)
	}
	for text, want := range map[string]string{
		`ports = 3000`:         "must be a list of ports, such as [3000]",
		`ports = ["3000"]`:     "item 1",
		`ports = [80, 70000]`:  "item 2: it must be between 1 and 65535, not 70000",
		`ports = [3000, 3000]`: "has 3000 twice",
	} {
		if _, err := config.ParseProject("agency.toml", []byte("[sandbox]\n"+text+"\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", text, err)
		}
	}
}
