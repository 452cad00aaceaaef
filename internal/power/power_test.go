package power

import (
	"os"
	"path/filepath"
	"testing"
)

func TestOnBattery(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		supplies map[string]string // the files of each
		want     bool
	}{
		"none":                 {nil, false},
		"plugged in":           {map[string]string{"AC/type": "Mains", "BAT0/type": "Battery", "BAT0/status": "Charging\n"}, false},
		"unplugged":            {map[string]string{"AC/type": "Mains", "BAT0/type": "Battery\n", "BAT0/status": "Discharging\n"}, true},
		"a mouse":              {map[string]string{"hid/type": "Battery", "hid/scope": "Device", "hid/status": "Discharging"}, false},
		"a battery of no word": {map[string]string{"BAT0/type": "Battery"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for path, text := range tt.supplies {
				path = filepath.Join(dir, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if got := onBattery(dir); got != tt.want {
				t.Errorf("got %t", got)
			}
		})
	}
}
