package maintain

import (
	"cmp"
	"encoding/json"
	"io"
	"reflect"

	"github.com/spf13/cobra"

	"agency"
	"agency/docs"
	"agency/internal/api"
	"agency/internal/cli/command"
	"agency/internal/cli/term"
)

// apiOptions are the dependencies of agency api.
type apiOptions struct {
	*command.Deps
}

// NewAPI returns the command agency api.
func NewAPI(d *command.Deps) *cobra.Command {
	o := &apiOptions{Deps: d}
	return command.New(cobra.Command{
		Use:     "api [CALL [-]]",
		Short:   "Run an operation of the daemon by its name, or print all of them",
		GroupID: "maintain",
		Long: `Runs the operation CALL, such as run.list, and prints the envelope of its
answer. With - the request is the JSON object on standard input, without it an empty one. Without
CALL it prints all operations with their requests and answers, as an OpenAPI 3.1 document;
docs/json.md describes the same for readers.

A request that leaves out the caller's environment (env), dir or config gets those of this command.`,
		Example: `  agency api run.list
  echo '{"status": ["needs-input"]}' | agency api run.list -
  agency api > openapi.json`,
		Args:              command.TakesUpTo("CALL", "-"),
		ValidArgsFunction: completeOperations,
	}, o.run)
}

// completeOperations offers the operations of the table.
func completeOperations(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	words := []string{}
	if len(args) == 0 {
		for _, op := range api.Operations() {
			words = append(words, cobra.CompletionWithDesc(op.Name, op.Help))
		}
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

func (o *apiOptions) run(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return o.Print(json.RawMessage(docs.OpenAPI), func(w io.Writer) { _, _ = io.WriteString(w, docs.OpenAPI) })
	}
	op, err := api.Find(args[0])
	if err != nil {
		return err
	}
	body := "{}"
	if len(args) == 2 {
		if args[1] != "-" {
			return agency.Errorf(agency.CodeUsage, "a request is read from standard input, not from the argument %q", args[1]).
				WithHint("printf %%s '%s' | agency api %s -", op.Example, op.Name)
		}
		if body, err = term.ReadAll(cmd.Context(), o.In, "the request", requestLimit); err != nil {
			return err
		}
	}
	o.JSON = true // the answer is an envelope, and so is an error before the request
	if len(body) > requestLimit {
		return agency.Errorf(agency.CodeUsage, "the request of %s is longer than %d bytes", op.Name, requestLimit)
	}
	req, err := op.NewRequest([]byte(body))
	if err != nil {
		return err
	}
	o.stand(req)
	client, err := o.Client()
	if err != nil {
		return err
	}
	answer, err := op.Send(cmd.Context(), client, req)
	if err != nil {
		return err
	}
	return o.Print(answer, nil)
}

// requestLimit is the longest request, in bytes: that of a prompt with room to escape it.
const requestLimit = 6 * agency.PromptLimit

// stand fills the caller's environment, directory and configuration into a request that takes the
// environment. Other requests use dir to select a repository, and an empty dir means all of them.
func (o *apiOptions) stand(req any) {
	fields := reflect.ValueOf(req).Elem()
	env := fields.FieldByName("Env")
	if !env.IsValid() {
		return
	}
	if env.Len() == 0 {
		env.Set(reflect.ValueOf(agency.Environ(o.Env)))
	}
	for name, value := range map[string]string{"Dir": o.Dir, "Config": o.CallerConfig()} {
		if f := fields.FieldByName(name); f.IsValid() {
			f.SetString(cmp.Or(f.String(), value))
		}
	}
}
