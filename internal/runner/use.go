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

// useFile holds what a runner in the mode protocol did with its network, for the next wrapper. It is in the
// folder of the heartbeat, which the daemon does not watch.
const useFile = "wrapper/network.json"

// useLimit is how much of useFile is read.
const useLimit = 1 << 20

// useEvery is the least time between two writes of useFile that only count known refusals.
const useEvery = 100 * time.Millisecond

// keptUse writes useFile. A nil keptUse writes nothing.
type keptUse struct {
	path string
	use  func() agency.NetworkUse

	mu  sync.Mutex
	due *time.Timer // calls write; nil when no write is due
}

// write writes the file now. When the disk does not take it, it tries again later.
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

// keep begins to keep what the runner does with its network, for the next wrapper. It adds what earlier
// wrappers have kept.
func (n *network) keep() error {
	n.kept = &keptUse{path: filepath.Join(n.launch.AttemptDir, useFile), use: n.proxy.Use}
	if !n.launch.Adopts {
		return nil
	}
	before, err := readUse(n.launch.AttemptDir)
	if before != nil {
		n.proxy.Continue(*before)
	}
	return err
}

// used is called when the use of the network has changed. It keeps news before it returns, and so before
// the runner hears of it; it keeps a new count of a known refusal soon.
func (n *network) used(news bool) {
	if !news {
		n.kept.soon()
		return
	}
	n.kept.write()
	killpoint.At("network.kept")
	n.client.network(n.use())
}
