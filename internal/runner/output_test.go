package runner

import (
	"os"
	"testing"
	"time"
)

// A disk that is slow to take the last output does not lose it.
func TestDrainWaitsForASlowDisk(t *testing.T) {
	t.Parallel()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	taken, begun, free := "", make(chan struct{}, 8), make(chan struct{})
	o := &output{came: make(chan struct{}, 1), progress: newProgress()}
	err = o.add(read, 4, func(p []byte) {
		begun <- struct{}{}
		<-free
		taken += string(p)
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := write.WriteString("the last"); err != nil {
		t.Fatal(err)
	}
	_ = write.Close()
	<-begun
	time.AfterFunc(drainLimit+100*time.Millisecond, func() { close(free) })
	o.drain(true)
	if taken != "the last" {
		t.Errorf("the disk took %q", taken)
	}
}

// A daemon that hears of output finds it in the log, also when another update goes out at that moment.
func TestOutputIsKnownWhenItIsThere(t *testing.T) {
	t.Parallel()
	o := &output{came: make(chan struct{}, 1), progress: newProgress()}
	o.take([]byte("a question\n"), func([]byte) {
		if o.last.Load() != 0 {
			t.Error("the output is announced before the log has it")
		}
	})
	if o.last.Load() == 0 || len(o.came) != 1 {
		t.Error("the output is not announced")
	}
}

// What a runner printed counts for a look when its pane has it, and a pane that takes nothing is not
// waited for without end.
func TestShownWhenThePaneHasIt(t *testing.T) {
	t.Parallel()
	o := &output{came: make(chan struct{}, 1), progress: newProgress()}
	begun, free, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		o.take([]byte("a dialog"), func([]byte) { close(begun); <-free })
	}()
	<-begun
	if o.passed.Load() != 0 || o.shown(0) != 8 {
		t.Error("the pane does not have it yet")
	}
	waited := make(chan int64)
	go func() { waited <- o.shown(time.Hour) }()
	close(free)
	if got := <-waited; got != 8 || o.passed.Load() != 8 {
		t.Errorf("%d bytes were seen, and the pane has %d", got, o.passed.Load())
	}
	<-done
}
