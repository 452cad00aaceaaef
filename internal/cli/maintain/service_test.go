package maintain_test

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"agency/internal/cli/maintain"
)

const wantPlist = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0"><dict>
  <key>Label</key><string>agency.daemon</string>
  <key>ProgramArguments</key><array><string>/opt/R&amp;D tools/agency</string><string>daemon</string><string>run</string></array>
  <key>EnvironmentVariables</key><dict><key>PATH</key><string>/usr/bin:/a &lt;b&gt;</string><key>AGENCY_HOME</key><string>/Users/you/My &#34;data&#34;</string></dict>
  <key>RunAtLoad</key><true/>
  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>
  <key>AbandonProcessGroup</key><true/>
</dict></plist>
`

// launchd gets well-formed XML, whose texts are the paths as they are.
func TestPlist(t *testing.T) {
	t.Parallel()
	env := [][2]string{{"PATH", "/usr/bin:/a <b>"}, {"AGENCY_HOME", `/Users/you/My "data"`}}
	got := maintain.Plist("/opt/R&D tools/agency", env)
	if got != wantPlist {
		t.Errorf("got\n%s", got)
	}
	var texts []string
	for d := xml.NewDecoder(strings.NewReader(got)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if text, ok := token.(xml.CharData); ok && strings.TrimSpace(string(text)) != "" {
			texts = append(texts, string(text))
		}
	}
	want := "Label|agency.daemon|ProgramArguments|/opt/R&D tools/agency|daemon|run|" +
		`EnvironmentVariables|PATH|/usr/bin:/a <b>|AGENCY_HOME|/Users/you/My "data"|RunAtLoad|KeepAlive|SuccessfulExit|AbandonProcessGroup`
	if s := strings.Join(texts, "|"); s != want {
		t.Errorf("a reader of XML gets %s", s)
	}
}
