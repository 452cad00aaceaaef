package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"

	"agency"
	"agency/internal/api"
)

// crew plays the wrappers of runs without any: it holds their locks and their connections to the
// daemon.
type crew struct {
	runs  *filling
	locks []*os.File
	conns []net.Conn
}

// newCrew takes the locks, which prove to a new daemon that a wrapper lives. The caller closes the
// crew.
func newCrew(f *filling) (*crew, error) {
	c := &crew{runs: f}
	for i := range f.runs {
		lock, err := os.OpenFile(filepath.Join(f.runs[i].Dir, "attempts", "1", "alive"), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			c.close()
			return nil, err
		}
		c.locks = append(c.locks, lock)
		if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			c.close()
			return nil, fmt.Errorf("lock %s: %w", lock.Name(), err)
		}
	}
	return c, nil
}

// connect introduces every wrapper to the daemon.
func (c *crew) connect(ctx context.Context, socket string) error {
	for i := range c.runs.runs {
		if err := c.introduce(ctx, socket, i); err != nil {
			return fmt.Errorf("play wrapper %d: %w", i, err)
		}
	}
	return nil
}

func (c *crew) introduce(ctx context.Context, socket string, n int) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", socket)
	if err != nil {
		return err
	}
	c.conns = append(c.conns, conn)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://agency"+api.WrapperPath, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "agency-wrapper")
	if err := req.Write(conn); err != nil {
		return err
	}
	in := bufio.NewReader(conn)
	resp, err := http.ReadResponse(in, req)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	r := &c.runs.runs[n]
	hello := agency.WrapperHello{RunID: r.ID, Attempt: 1, Token: token, Wrapper: *r.Attempt.Wrapper, Version: 1}
	if err := json.NewEncoder(conn).Encode(map[string]any{"kind": "hello", "hello": hello}); err != nil {
		return err
	}
	line, err := in.ReadBytes('\n')
	if err != nil {
		return err
	}
	var answer struct{ Kind string }
	if err := json.Unmarshal(line, &answer); err != nil || answer.Kind != "welcome" {
		return fmt.Errorf("the daemon said %q: %w", line, err)
	}
	return nil
}

func (c *crew) close() {
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	for _, lock := range c.locks {
		_ = lock.Close()
	}
}
