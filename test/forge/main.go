package forge

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// Programs are the names under which a test binary is the program that Main is.
var Programs = []string{"gh", "glab", "forge"}

// Main is a gh or a glab that answers "api" itself, and the tool forge, by the name of the process.
// FORGE_STATE names the file of the state, FORGE_REPO the bare repository. It returns the exit
// status.
func Main() int {
	s, err := Open(os.Getenv("FORGE_STATE"), os.Getenv("FORGE_REPO"))
	if err == nil && filepath.Base(os.Args[0]) == "forge" {
		err = s.change(os.Args[1:])
	} else if err == nil {
		return s.api(os.Args[1:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	return 0
}

// change is the tool forge: it sets a field of the newest pull request, or of the forge itself.
//
//	forge KEY VALUE
func (s *State) change(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: forge KEY VALUE, not %q", args)
	}
	key, value := args[0], args[1]
	if key == "fail" {
		s.Fail = value
		s.save()
		return nil
	}
	data, err := json.Marshal(s.PRs[len(s.PRs)-1])
	if err != nil {
		return err
	}
	var fields map[string]any
	if err := json.Unmarshal(data, &fields); err != nil {
		return err
	}
	if fields[key] == nil {
		return fmt.Errorf("a pull request has no %s", key)
	}
	fields[key] = value
	if is, err := strconv.ParseBool(value); err == nil {
		fields[key] = is
	}
	if data, err = json.Marshal(fields); err != nil {
		return err
	}
	if err := json.Unmarshal(data, &s.PRs[len(s.PRs)-1]); err != nil {
		return err
	}
	s.save()
	return nil
}

func (s *State) api(args []string) int {
	method, body := "GET", []byte(nil)
	if i := slices.Index(args, "--method"); i >= 0 {
		method = args[i+1]
	}
	if slices.Contains(args, "--input") {
		body, _ = io.ReadAll(os.Stdin)
	}
	if args[0] != "api" || !slices.Contains(args, "--hostname") {
		fmt.Fprintf(os.Stderr, "unknown command %q\n", args)
		return 1
	}
	status, answer := s.Serve(method, args[len(args)-1], body)
	data, err := json.Marshal(answer)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(data))
	if s.Fail == "kill" && status == 201 {
		s.Fail = ""
		s.save()
		_ = syscall.Kill(os.Getppid(), syscall.SIGKILL)
	}
	if status >= 400 {
		said, _ := answer.(map[string]any)["message"].(string)
		fmt.Fprintf(os.Stderr, "%s: %s (HTTP %d)\n", filepath.Base(os.Args[0]), said, status)
		return 1
	}
	return 0
}
