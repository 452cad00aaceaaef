package sandbox

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"agency"
	"agency/internal/docker"
	"agency/internal/file"
)

// Containers returns the containers of agency, of any data root, in the engine that an environment names and
// in those that the attempts of a data root noted. away are the noted containers whose engine does not
// answer: they may still exist.
func (h *Host) Containers(ctx context.Context, env agency.Environ, home string) (found, away []agency.Container) {
	if !supported {
		return nil, nil
	}
	sockets := map[string][]agency.Container{} // with the containers that should be there
	if socket, err := docker.SocketOf(env); err == nil {
		sockets[socket] = nil
	}
	notes, _ := filepath.Glob(filepath.Join(home, "runs", "*", "attempts", "*", CargoFile))
	for _, path := range notes {
		var k cargo
		if data, err := file.ReadRegular(path, 1<<20); err != nil || json.Unmarshal(data, &k) != nil {
			continue
		}
		dir := filepath.Dir(path)
		number, _ := strconv.Atoi(filepath.Base(dir))
		sockets[k.Socket] = append(sockets[k.Socket], agency.Container{
			Name: k.Name, Engine: k.Socket, Home: home, Run: agency.RunID(filepath.Base(filepath.Dir(filepath.Dir(dir)))), Attempt: number,
		})
	}
	for socket, noted := range sockets {
		list, err := labelled(ctx, socket)
		if err != nil {
			away = append(away, noted...)
			continue
		}
		found = append(found, list...)
	}
	order := func(a, b agency.Container) int { return strings.Compare(a.Name, b.Name) }
	slices.SortFunc(found, order)
	slices.SortFunc(away, order)
	return found, away
}

// labelled returns the containers of agency in an engine.
func labelled(ctx context.Context, socket string) ([]agency.Container, error) {
	client := docker.New(socket)
	if err := client.Open(ctx); err != nil {
		return nil, err
	}
	list, err := client.Labelled(ctx, labelHome)
	if err != nil {
		return nil, err
	}
	found := []agency.Container{}
	for _, c := range list {
		number, _ := strconv.Atoi(c.Labels[labelAttempt])
		found = append(found, agency.Container{
			Name: c.Name(), Engine: socket, Home: c.Labels[labelHome], Run: agency.RunID(c.Labels[labelRun]), Attempt: number,
		})
	}
	return found, nil
}
