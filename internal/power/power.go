// Package power reports whether the machine runs on its battery.
package power

import (
	"path/filepath"
	"strings"

	"agency/internal/file"
)

// supplies is where Linux lists the power supplies. Elsewhere there is no such folder.
const supplies = "/sys/class/power_supply"

// OnBattery reports whether a battery of the machine is being discharged. A machine whose supplies
// are unknown is not on battery.
func OnBattery() bool { return onBattery(supplies) }

func onBattery(folder string) bool {
	batteries, _ := filepath.Glob(filepath.Join(folder, "*"))
	for _, supply := range batteries {
		word := func(name string) string {
			data, _ := file.ReadRegular(filepath.Join(supply, name), 1<<10)
			return strings.TrimSpace(string(data))
		}
		// The battery of a mouse has the scope Device.
		if word("type") == "Battery" && word("scope") != "Device" && word("status") == "Discharging" {
			return true
		}
	}
	return false
}
