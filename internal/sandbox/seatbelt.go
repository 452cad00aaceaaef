package sandbox

import (
	"path/filepath"
	"slices"
	"strings"

	"agency"
)

// seatbeltProgram is the program of macOS that starts another one within the rules of a profile.
const seatbeltProgram = "/usr/bin/sandbox-exec"

// services are the services of the system that programs look up to know users, names, times and
// certificates. None of them reads a file or starts a program for its client.
var services = []string{
	"com.apple.PowerManagement.control", "com.apple.bsd.dirhelper", "com.apple.logd", "com.apple.system.logger",
	"com.apple.system.notification_center", "com.apple.system.opendirectoryd.libinfo", "com.apple.system.opendirectoryd.membership",
	"com.apple.trustd", "com.apple.trustd.agent",
}

// netServices are the services that programs look up to reach a network.
var netServices = []string{
	"com.apple.SystemConfiguration.DNSConfiguration", "com.apple.SystemConfiguration.configd", "com.apple.networkd", "com.apple.ocspd",
}

// bySeatbelt is Command for the level process on macOS: the agent is in the machine's file system, as
// at the level landlock, and Seatbelt enforces the fence.
func bySeatbelt(c *agency.Confinement) (argv []string, env agency.Environ, err error) {
	f, env, err := fenced(c)
	if err != nil {
		return nil, nil, err
	}
	kept := []string{filepath.Join(c.Run.Worktree, ".git")}
	for _, name := range c.Git.Protected {
		kept = append(kept, filepath.Join(c.Git.Entry, name))
	}
	for _, objects := range c.Git.Objects {
		kept = append(kept, filepath.Join(objects, "info"))
	}
	return slices.Concat([]string{seatbeltProgram, "-p", f.resolved().profile(resolved(kept))}, c.Argv), env, nil
}

// resolved returns a fence with real paths, which Seatbelt compares. Paths that do not exist are left out.
func (f *fence) resolved() *fence {
	real := *f
	real.Read, real.Write, real.Names = resolved(f.Read), resolved(f.Write), resolved(f.Names)
	return &real
}

// resolved returns the real paths of files, or for those that are not there, of their folders.
func resolved(paths []string) []string {
	list := []string{}
	for _, path := range paths {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			if real, err = filepath.EvalSymlinks(filepath.Dir(path)); err != nil {
				continue
			}
			real = filepath.Join(real, filepath.Base(path))
		}
		list = append(list, real)
	}
	return list
}

// profile returns the rules of Seatbelt that enforce a fence, in the language of sandbox-exec (SBPL,
// which Apple does not document). kept are files that cannot be written, although the fence has them. The
// last rule that matches decides. All paths are real ones.
func (f *fence) profile(kept []string) string {
	write, all := filter("subpath", f.Write), filter("subpath", slices.Concat(f.Read, f.Write))
	var rules []string
	// A rule without a filter would match everything.
	rule := func(head string, filters ...string) {
		if all := strings.Join(filters, ""); all != "" {
			rules = append(rules, "("+head+all+")")
		}
	}
	rules = append(rules,
		"(version 1)",
		"(deny default)",
		"(allow process-fork)",
		"(allow process-info* (target same-sandbox))",
		"(allow signal (target same-sandbox))",
		"(allow sysctl-read)",
		`(deny sysctl-read (sysctl-name-prefix "kern.procargs"))`, // the arguments and variables of others
		"(allow ipc-posix-sem)",
		`(allow ipc-posix-shm-read-data (ipc-posix-name "apple.shm.notification_center"))`,
		"(allow file-read-metadata)",
		// A terminal that the agent makes; its own one is open.
		"(allow pseudo-tty)",
		`(allow file-read* file-write* (require-all (regex #"^/dev/ttys[0-9]+$") (extension "com.apple.sandbox.pty")))`,
	)
	rule("allow process-exec*", all)
	rule("allow mach-lookup", filter("global-name", services))
	rule("allow file-read*", filter("literal", append([]string{"/"}, f.Names...)), all)
	rule("allow file-write*", write)
	rule("allow file-ioctl", write, ` (regex #"^/dev/ttys[0-9]+$")`)
	rule("allow network-bind network-outbound", write) // sockets that are files
	rule("deny file-write*", filter("subpath", kept))
	rule("deny file-write-unlink", filter("literal", f.fixed(kept)))
	if f.Network == agency.NetworkFull {
		rules = append(rules,
			"(allow system-socket)",
			`(allow network-bind network-inbound (local ip "*:*"))`,
			`(allow network-outbound (remote ip "*:*") (literal "/private/var/run/mDNSResponder"))`,
		)
		rule("allow mach-lookup", filter("global-name", netServices))
	}
	return strings.Join(rules, "\n") + "\n"
}

// fixed returns the paths that an agent must not move away, since the rules are about paths: those
// that it writes, and the folders between them and what is kept.
func (f *fence) fixed(kept []string) []string {
	paths := slices.Clone(f.Write)
	for _, path := range kept {
		for _, root := range f.Write {
			for dir := filepath.Dir(path); dir != root && above(root, dir); dir = filepath.Dir(dir) {
				paths = append(paths, dir)
			}
		}
	}
	return paths
}

// quoting escapes what would end a text of a profile.
var quoting = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// filter returns one filter of a profile for each value.
func filter(kind string, values []string) string {
	var b strings.Builder
	for _, v := range values {
		b.WriteString(" (" + kind + ` "` + quoting.Replace(v) + `")`)
	}
	return b.String()
}
