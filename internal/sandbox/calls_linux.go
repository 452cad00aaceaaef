package sandbox

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"agency"
)

// The offsets of the data about a system call that a filter reads.
const (
	callNumber = 0
	callArch   = 4
	callArg0   = 16 // the low half; arguments have 8 bytes
	callArg1   = 24
)

// forbidden are the system calls that a sandboxed program has no use for, and that reach deep into
// the kernel or beyond the sandbox.
var forbidden = []uint32{
	unix.SYS_ADD_KEY, unix.SYS_KEYCTL, unix.SYS_REQUEST_KEY, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD,
	unix.SYS_KEXEC_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_ACCT, unix.SYS_SWAPON, unix.SYS_SWAPOFF,
	unix.SYS_REBOOT, unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_OPEN_TREE,
	unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_OPEN_BY_HANDLE_AT,
}

// limitCalls makes the kernel refuse, for this thread and all that it starts, the forbidden calls,
// new namespaces, and typing into the terminal (TIOCSTI and TIOCLINUX).
func limitCalls() error { return filterCalls(rules) }

// limitSockets makes the kernel refuse what Landlock does not: unix sockets, or all sockets with the network
// none; and setting the limits of other processes. It is for a fence that is alone.
func limitSockets(network agency.Network) error {
	return filterCalls(func(uint32) []unix.SockFilter {
		f := []unix.SockFilter{
			// io_uring opens sockets without a system call for each.
			{Code: equal, K: unix.SYS_IO_URING_SETUP, Jf: 1},
			{Code: result, K: absent},
			{Code: equal, K: unix.SYS_PRLIMIT64, Jf: 3},
			{Code: load, K: callArg0},
			{Code: equal, K: 0, Jt: 1},
			{Code: result, K: denied},
			{Code: load, K: callNumber},
		}
		if network == agency.NetworkNone {
			return append(f, unix.SockFilter{Code: equal, K: unix.SYS_SOCKET, Jf: 1}, unix.SockFilter{Code: result, K: denied})
		}
		return append(f, unix.SockFilter{Code: equal, K: unix.SYS_SOCKET, Jf: 3}, unix.SockFilter{Code: load, K: callArg0},
			unix.SockFilter{Code: equal, K: unix.AF_UNIX, Jf: 1}, unix.SockFilter{Code: result, K: denied})
	})
}

// filterCalls makes the kernel filter each system call of this thread, and of all that it starts. A call is
// allowed unless the rules for the architecture refuse it. Programs for another architecture, such as those
// with 32 bits, get no system call at all, since their numbers mean other calls.
func filterCalls(rules func(arch uint32) []unix.SockFilter) error {
	arch, ok := map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}[runtime.GOARCH]
	if !ok {
		return fmt.Errorf("the processor %s is not known", runtime.GOARCH)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	filter := []unix.SockFilter{
		{Code: load, K: callArch},
		{Code: equal, K: arch, Jt: 1},
		{Code: result, K: denied},
		{Code: load, K: callNumber},
	}
	filter = append(append(filter, rules(arch)...), unix.SockFilter{Code: result, K: allow})
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0); err != nil { //nolint:gosec // the kernel reads it
		return fmt.Errorf("limit the system calls: %w", err)
	}
	return nil
}

// newNamespaces are the flags that make any namespace.
const newNamespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// The steps of a filter.
const (
	load   = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS
	equal  = unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K
	least  = unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K
	anyBit = unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K
	result = unix.BPF_RET | unix.BPF_K
	allow  = unix.SECCOMP_RET_ALLOW
	denied = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	absent = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
)

// rules returns the rules of limitCalls for an architecture.
func rules(arch uint32) []unix.SockFilter {
	const x32 = 0x40000000
	f := []unix.SockFilter{}
	if arch == unix.AUDIT_ARCH_X86_64 {
		f = append(f, unix.SockFilter{Code: least, K: x32, Jf: 1}, unix.SockFilter{Code: result, K: denied})
	}
	for _, call := range forbidden {
		f = append(f, unix.SockFilter{Code: equal, K: call, Jf: 1}, unix.SockFilter{Code: result, K: denied})
	}
	f = append(f,
		// The flags of clone3 are in memory, which a filter cannot read; the C library then calls clone.
		unix.SockFilter{Code: equal, K: unix.SYS_CLONE3, Jf: 1}, unix.SockFilter{Code: result, K: absent},
		unix.SockFilter{Code: equal, K: unix.SYS_UNSHARE, Jt: 1},
		unix.SockFilter{Code: equal, K: unix.SYS_CLONE, Jf: 4},
		unix.SockFilter{Code: load, K: callArg0},
		unix.SockFilter{Code: anyBit, K: newNamespaces, Jf: 1},
		unix.SockFilter{Code: result, K: denied},
		unix.SockFilter{Code: result, K: allow},
		unix.SockFilter{Code: equal, K: unix.SYS_IOCTL, Jf: 4},
		unix.SockFilter{Code: load, K: callArg1},
		unix.SockFilter{Code: equal, K: unix.TIOCSTI, Jt: 1},
		unix.SockFilter{Code: equal, K: tiocLinux, Jf: 1},
		unix.SockFilter{Code: result, K: denied},
	)
	return f
}

// tiocLinux is the request (TIOCLINUX) that can paste into a console of Linux.
const tiocLinux = 0x541c
