package api

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"reflect"
)

// ShapeHeader carries the shape of the operation or stream that a request is for. A client sends it
// after its daemon was replaced by one of another version: the new daemon serves it where both
// versions have the same shape, so that a command that waits or follows outlives an upgrade.
const ShapeHeader = "Agency-Shape"

// Shape returns a digest of the kind and the types of the operation or stream at a path: two
// programs with the same digest understand each other. It returns "" for any other path.
func Shape(path string) string {
	var kind Kind
	var types []reflect.Type
	for _, op := range Operations() {
		if op.Path() == path {
			kind, types = op.Kind, []reflect.Type{op.Request, op.Response}
		}
	}
	for _, s := range Streams() {
		if s.Path == path {
			kind, types = Reads, []reflect.Type{s.Query, s.Item}
		}
	}
	if types == nil {
		return ""
	}
	digest := sha256.New()
	_, _ = fmt.Fprintln(digest, kind)
	known := map[reflect.Type]bool{}
	for _, t := range types {
		writeShape(digest, t, known)
	}
	return hex.EncodeToString(digest.Sum(nil)[:8])
}

// writeShape writes the structure of a type, and once that of each type in it.
func writeShape(w io.Writer, t reflect.Type, known map[reflect.Type]bool) {
	if t == nil || known[t] {
		_, _ = fmt.Fprintln(w, t)
		return
	}
	known[t] = true
	_, _ = fmt.Fprintln(w, t, t.Kind())
	switch t.Kind() {
	case reflect.Struct:
		for f := range t.Fields() {
			_, _ = fmt.Fprintln(w, f.Name, f.Tag.Get("json"))
			writeShape(w, f.Type, known)
		}
	case reflect.Map:
		writeShape(w, t.Key(), known)
		writeShape(w, t.Elem(), known)
	case reflect.Array, reflect.Pointer, reflect.Slice:
		writeShape(w, t.Elem(), known)
	default:
	}
}
