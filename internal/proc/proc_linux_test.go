package proc_test

import (
	"os"
	"testing"

	"agency/internal/proc"
)

func TestOfThisProcess(t *testing.T) {
	t.Parallel()
	got, err := proc.Of(os.Getpid())
	if err != nil || got.PID != os.Getpid() || got.Parent != os.Getppid() || got.Resident == 0 {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := proc.Of(1 << 30); !os.IsNotExist(err) {
		t.Errorf("a process that is not there: %v", err)
	}
}
