package api_test

import (
	"fmt"
	"reflect"
	"testing"

	"agency/internal/api"
)

// Every key that travels has a description, so docs/json.md and docs/openapi.json tell what it is.
func TestDocsDescribeEveryKey(t *testing.T) {
	t.Parallel()
	from, seen := readSource(t), map[reflect.Type]bool{}
	check := func(root reflect.Type) {
		for _, typ := range structs(root) {
			if seen[typ] {
				continue
			}
			seen[typ] = true
			for _, f := range reflect.VisibleFields(typ) {
				if key, _ := jsonKey(&f); key != "-" && !f.Anonymous && from.describe(typ, &f) == "" {
					t.Errorf("%s.%s has no comment, so nothing tells what the key %q is", typ, f.Name, key)
				}
			}
		}
	}
	for _, op := range api.Operations() {
		check(op.Request)
		check(op.Response)
	}
	for _, s := range api.Streams() {
		check(s.Query)
		if s.Item != nil {
			check(s.Item)
		}
	}
	check(reflect.TypeFor[api.Problem]())
}

// So has every value of a closed set, unless the comment of the set says where they are described.
func TestDocsDescribeEveryValue(t *testing.T) {
	t.Parallel()
	from := readSource(t)
	_ = operationsText(from) // finds the closed sets
	for _, set := range from.sets {
		told := 0
		for _, value := range from.values[set.String()] {
			if from.comments[fmt.Sprint(set, "=", value)] != "" {
				told++
			}
		}
		if all := len(from.values[set.String()]); from.comments[set.String()] == "" || told != 0 && told != all {
			t.Errorf("%d of the %d values of %s have a comment, so nothing tells what the others mean", told, all, set)
		}
	}
}
