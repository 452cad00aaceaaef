package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"agency"
	"agency/internal/file"
	"agency/internal/killpoint"
)

// useFile holds what a runner in the mode protocol did with its network, for the next wrapper. It is
// in the folder of the heartbeat: no daemon watches that.
const useFile = "wrapper/network.json"

// useLimit is how much of useFile is read.
const useLimit = 1 << 20

// useEvery is how often a refusal that is known already is counted in useFile, at most.
const useEvery = 100 * time.Millisecond

// keptUse writes useFile. A nil one writes nothing.
type keptUse struct {
	path string
	use  func() agency.NetworkUse

	mu  sync.Mutex
	due *time.Timer // writes soon; nil when nothing is to be written
}

// write writes what was used. On a disk that does not take it, it tries again.
func (k *keptUse) write() {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.due != nil {
		k.due.Stop()
		k.due = nil
	}
	data, err := json.Marshal(k.use())
	if err == nil {
		err = file.WriteAtomic(k.path, data)
	}
	if err != nil {
		k.due = time.AfterFunc(useEvery, k.write)
	}
}

// soon writes within useEvery.
func (k *keptUse) soon() {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.due == nil {
		k.due = time.AfterFunc(useEvery, k.write)
	}
}

// readUse returns what the wrappers of a runner have kept of its network; nil when they kept nothing.
func readUse(attemptDir string) (*agency.NetworkUse, error) {
	data, err := file.ReadRegular(filepath.Join(attemptDir, useFile), useLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	use := &agency.NetworkUse{}
	if err == nil {
		err = json.Unmarshal(data, use)
	}
	if err != nil {
		return nil, fmt.Errorf("read what the agent did with its network: %w", err)
	}
	return use, nil
}

// keepUse keeps what the runner does with its network for the next wrapper, and continues with what
// earlier ones have kept.
func (w *wrapper) keepUse() {
	w.kept = &keptUse{path: filepath.Join(w.launch.AttemptDir, useFile), use: w.proxy.Use}
	if w.adopted == nil {
		return
	}
	before, err := readUse(w.launch.AttemptDir)
	if err != nil {
		w.printNote("warning: " + err.Error())
	}
	if before != nil {
		w.proxy.Continue(*before)
	}
}

// used takes note that the runner used its network. When that is new, it is kept before the runner
// hears of it.
func (w *wrapper) used(news bool) {
	if !news {
		w.kept.soon()
		return
	}
	w.kept.write()
	killpoint.At("network.kept")
	w.client.network()
}
