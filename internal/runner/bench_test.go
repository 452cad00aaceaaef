package runner_test

import (
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/creack/pty"
)

const benchBytes = 256 << 20

// BenchmarkHeadless measures the throughput of two pipes into three logs.
func BenchmarkHeadless(b *testing.B) {
	b.SetBytes(benchBytes)
	for b.Loop() {
		f := prepare(b, "head -c "+itoa(benchBytes)+" /dev/zero")
		f.launch.Headless = true
		f.beginOn(nullFile(b))
		f.wait()
	}
}

// BenchmarkInteractive compares the wrapper with a bare loop that copies a terminal of the same
// kind.
func BenchmarkInteractive(b *testing.B) {
	const script = "stty raw; yes 'a line of some length, as programs write them to terminals' | head -c "
	b.SetBytes(benchBytes)
	var ours, bare time.Duration
	for b.Loop() {
		begin := time.Now()
		f := prepare(b, script+itoa(benchBytes))
		f.beginOn(nullFile(b))
		f.wait()
		ours += time.Since(begin)

		begin = time.Now()
		cmd := exec.Command("/bin/sh", "-c", script+itoa(benchBytes))
		master, err := pty.Start(cmd)
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.CopyBuffer(struct{ io.Writer }{nullFile(b)}, struct{ io.Reader }{master}, make([]byte, 64<<10))
		_ = cmd.Wait()
		_ = master.Close()
		bare += time.Since(begin)
	}
	b.ReportMetric(float64(bare)/float64(ours), "x-bare-loop")
}

func nullFile(b *testing.B) *os.File {
	b.Helper()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = null.Close() })
	return null
}
