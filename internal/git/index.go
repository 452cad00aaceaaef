package git

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // git's own checksum of an index
	"encoding/binary"
	"errors"
	"io/fs"

	"agency/internal/file"
)

// The format of an index, by gitformat-index(5).
const (
	indexHeader  = 12
	indexFixed   = 62 // bytes of an entry before its name
	indexAssumed = 1 << 15
	indexExtends = 1 << 14
	indexStages  = 3 << 12
	indexLink    = 0o160000

	mostIndex = 64 << 20 // bytes; an agent can write it
)

// readIndex returns the special files of an index without running git. ok is false for an index in
// an unknown form or with a wrong checksum: then git has to be asked. A missing index is empty.
func readIndex(path string) (e entries, ok bool) {
	data, err := file.ReadRegular(path, mostIndex)
	if errors.Is(err, fs.ErrNotExist) {
		return entries{}, true
	}
	if err != nil {
		return entries{}, false
	}
	return parseIndex(data)
}

func parseIndex(data []byte) (e entries, ok bool) {
	if len(data) < indexHeader+sha1.Size {
		return entries{}, false
	}
	body, sum := data[:len(data)-sha1.Size], data[len(data)-sha1.Size:]
	// A correct sum also means that objects are named by SHA-1.
	if made := sha1.Sum(body); !bytes.Equal(made[:], sum) { //nolint:gosec // as above
		return entries{}, false
	}
	version, count := binary.BigEndian.Uint32(body[4:]), binary.BigEndian.Uint32(body[8:])
	if string(body[:4]) != "DIRC" || version != 2 && version != 3 {
		return entries{}, false
	}
	rest := body[indexHeader:]
	for range count {
		if len(rest) < indexFixed {
			return entries{}, false
		}
		mode, flags, name := binary.BigEndian.Uint32(rest[24:]), binary.BigEndian.Uint16(rest[60:]), indexFixed
		if flags&indexExtends != 0 {
			name += 2
		}
		length := bytes.IndexByte(rest[min(name, len(rest)):], 0)
		if length <= 0 {
			return entries{}, false
		}
		path := string(rest[name : name+length])
		e.unmerged = e.unmerged || flags&indexStages != 0
		if mode == indexLink && (len(e.links) == 0 || e.links[len(e.links)-1] != path) { // a conflict lists a path several times
			e.links = append(e.links, path)
		}
		if flags&indexAssumed != 0 {
			e.assumed = append(e.assumed, path)
		}
		size := (name + length + 8) / 8 * 8 // it ends in one to eight NULs
		if size > len(rest) {
			return entries{}, false
		}
		rest = rest[size:]
	}
	for len(rest) > 0 { // an extension that must be understood begins with a small letter
		if len(rest) < 8 || rest[0] < 'A' || rest[0] > 'Z' || uint64(binary.BigEndian.Uint32(rest[4:])) > uint64(len(rest)-8) {
			return entries{}, false
		}
		rest = rest[8+binary.BigEndian.Uint32(rest[4:]):]
	}
	return e, true
}
