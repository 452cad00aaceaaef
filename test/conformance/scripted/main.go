// Scripted serves the scripted model of the tests, for trying an agent without an account: it prints
// the server's URL, and answers by the scenario in a file until it is ended.
//
//	go run ./test/conformance/scripted scenario.json
//
// The file is a JSON list of turns, such as [{"text": "I look.", "shell": "ls"}, {"text": "Done."}].
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"agency/test/conformance/modelserver"
)

func main() {
	if err := serve(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "scripted:", err)
		os.Exit(1)
	}
}

func serve(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: scripted SCENARIO.json")
	}
	data, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	var turns []struct{ Text, Shell string }
	if err := json.Unmarshal(data, &turns); err != nil {
		return fmt.Errorf("read %s: %w", args[0], err)
	}
	scenario := modelserver.Scenario{}
	for _, t := range turns {
		scenario = append(scenario, modelserver.Turn{Text: t.Text, Shell: t.Shell})
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, os.Interrupt, syscall.SIGTERM)
	server := modelserver.Start(scenario)
	defer server.Close()
	fmt.Println(server.URL)
	<-ended
	return nil
}
