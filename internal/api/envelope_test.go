package api_test

import (
	"encoding/json"
	"testing"

	"agency"
	"agency/internal/api"
)

// Reading any answer on the socket fails only with an error, and what was read can be sent on.
func FuzzEnvelope(f *testing.F) {
	for _, seed := range []string{
		`{"ok":true,"schema_version":1,"data":{"run":{"id":"r_1"}}}`,
		`{"ok":false,"schema_version":1,"error":{"code":"E_USAGE","message":"m","hint":"h","details":{"a":[1]}}}`,
		`{"ok":false,"error":null}`, `{"error":{}}`, `{"data":[]}`, `null`, `{`, "",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var resp api.RunResponse
		env := api.Envelope{Data: &resp}
		if json.Unmarshal(data, &env) != nil {
			return
		}
		again := api.Success(env.Data)
		if err := env.Err(); err != nil {
			again = api.Failure(err)
			if again.Error.Details == nil || again.Error.Code != agency.AsError(err).Code {
				t.Errorf("%v became %+v", err, again.Error)
			}
		}
		if _, err := json.Marshal(again); err != nil {
			t.Errorf("%q cannot be sent on: %v", data, err)
		}
	})
}
