package git

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"agency"
	"agency/internal/file"
)

// setting is one line of a git configuration, its key as git lists it.
type setting struct {
	key   string
	value string
	bare  bool // a key without a value, which is true
}

// read is the configuration of a repository, which is valid as long as its file is the same.
type read struct {
	info     fs.FileInfo
	settings []setting
}

// settings returns the settings of the repository itself, and of the files that it includes.
func (g *program) settings(ctx context.Context, commonDir string) ([]setting, error) {
	info, err := os.Stat(filepath.Join(commonDir, "config"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	known, ok := g.reads[commonDir]
	g.mu.Unlock()
	if ok && os.SameFile(info, known.info) && info.Size() == known.info.Size() && info.ModTime().Equal(known.info.ModTime()) {
		return known.settings, nil
	}
	list, err := g.readSettings(ctx, commonDir)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.reads, commonDir)
	if !slices.ContainsFunc(list, func(s setting) bool { return strings.HasPrefix(s.key, "include") }) {
		g.reads[commonDir] = read{info, list} // an included file may have changed unnoticed
	}
	return list, nil
}

func (g *program) readSettings(ctx context.Context, commonDir string) ([]setting, error) {
	out, err := g.do(ctx, call{
		dir: commonDir, site: site{gitDir: commonDir, commonDir: commonDir},
		args: []string{"config", "--list", "-z", "--local", "--includes"},
	})
	return parseSettings(out), err
}

// parseSettings reads the output of config --list -z.
func parseSettings(out string) []setting {
	list := []setting{}
	for line := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		key, value, found := strings.Cut(line, "\n")
		if strings.Contains(key, ".") {
			list = append(list, setting{key, value, !found})
		}
	}
	return list
}

// parts splits a key into its section, the text between its first and its last dot, and its name.
func (s setting) parts() (section, sub, name string) {
	section, rest, _ := strings.Cut(s.key, ".")
	if i := strings.LastIndexByte(rest, '.'); i >= 0 {
		return section, rest[:i], rest[i+1:]
	}
	return section, "", rest
}

// noPrograms are the settings of a repository that count when agency looks at its worktrees and
// saves them. They decide how files are read, and none of them names a program. All other settings
// are left out, so that a key that a later version of git adds does no harm.
var noPrograms = map[string][]string{
	"core": {
		"repositoryformatversion", "bare", "filemode", "symlinks", "ignorecase", "precomposeunicode", "protecthfs", "protectntfs", "autocrlf",
		"eol", "safecrlf", "checkroundtripencoding", "trustctime", "checkstat", "bigfilethreshold", "compression", "loosecompression",
		"sharedrepository", "logallrefupdates", "excludesfile", "attributesfile", "sparsecheckoutcone",
	},
	"extensions": {"objectformat", "compatobjectformat", "refstorage", "noop", "partialclone", "preciousobjects"},
	"merge":      {"renames", "renamelimit", "directoryrenames"},
	"remote":     {"promisor", "partialclonefilter"},
}

// programs are the settings that name programs which run when files are read or merged. Those that
// a run recorded continue to work. git-lfs has some in its extensions.
var programs = map[string][]string{
	"filter": {"clean", "smudge", "process", "required"},
	"merge":  {"name", "driver", "recursive"},
	"lfs":    nil, // all
}

// elsewhere are the settings that name programs, or where to find them, which run only when a
// worktree is made, or never. A run records a hash of them.
var elsewhere = map[string][]string{
	"core": {"hookspath", "sshcommand", "gitproxy", "askpass", "fsmonitor", "alternaterefscommand"},
	"hook": nil, "credential": nil, "url": nil, "protocol": nil, "include": nil, "includeif": nil,
	"filter": nil, "merge": {"driver"}, "remote": {"uploadpack", "vcs", "proxy"},
}

func (s setting) in(table map[string][]string) bool {
	section, sub, name := s.parts()
	names, known := table[section]
	if section == "merge" && (sub != "") == slices.Contains(noPrograms["merge"], name) {
		return false // merge.renames is a setting of its own, merge.NAME.driver names a program
	}
	return known && (names == nil || slices.Contains(names, name))
}

// relative reports whether a command names a file by a relative path. The file would come from the
// folder that the command runs in, which is a worktree, so its files would decide what runs.
func relative(command string) bool {
	for word := range strings.FieldsFuncSeq(command, func(r rune) bool { return strings.ContainsRune(" \t\n'\"`;|&()<>=", r) }) {
		if i := strings.IndexByte(word, '/'); i > 0 && word[0] != '~' && word[0] != '$' {
			return true
		}
	}
	return false
}

// neutral returns the settings that name no program.
func neutral(list []setting) []setting {
	return slices.DeleteFunc(slices.Clone(list), func(s setting) bool { return !s.in(noPrograms) })
}

// trusted returns the settings, including those that name programs which run when files are read or
// merged.
func trusted(list []setting) []setting {
	return slices.DeleteFunc(slices.Clone(list), func(s setting) bool {
		return !s.in(noPrograms) && (!s.in(programs) || relative(s.value))
	})
}

// format returns settings as a configuration file.
func format(list []setting) string {
	var b strings.Builder
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`, "\b", `\b`)
	for _, s := range list {
		section, sub, name := s.parts()
		if sub != "" {
			section += ` "` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(sub) + `"`
		}
		fmt.Fprintf(&b, "[%s]\n\t%s", section, name)
		if !s.bare {
			fmt.Fprintf(&b, ` = "%s"`, escape.Replace(s.value))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Record keeps the part of a repository's configuration that counts for a new run there, and
// returns the repository with the name of that record. Programs that the repository names later do
// not run when agency looks at that run. Record writes nothing when the configuration is already
// recorded. When it returns, the record is on the disk.
func (g *Repos) Record(ctx context.Context, repo agency.Repo) (agency.Repo, error) {
	list, err := g.settings(ctx, repo.CommonDir)
	if err != nil {
		return repo, fmt.Errorf("read the git configuration of %s: %w", repo.Root, err)
	}
	text, remotes := format(trusted(list)), format(reaching(list))
	repo.GitConfig, repo.GitPrograms, repo.GitRemotes = digest(text), "", digest(remotes)
	if named := namedPrograms(repo, list); named != "" {
		repo.GitPrograms = digest(named)
	}
	if err := os.MkdirAll(g.records, 0o700); err != nil {
		return repo, err
	}
	if err := errors.Join(g.keep(text), g.keep(remotes)); err != nil {
		return repo, fmt.Errorf("record the git configuration of %s: %w", repo.Root, err)
	}
	return repo, nil
}

// keep writes a text into the folder of records, under its hash, if it is not there. It replaces a
// record that was changed.
func (g *program) keep(text string) error {
	name := digest(text)
	known, err := file.ReadBeneath(g.records, name, 1<<20)
	if err == nil {
		if string(known) == text {
			return nil
		}
		if err := os.Remove(filepath.Join(g.records, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	err = file.CreateBeneath(g.records, name, []byte(text), 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// namedPrograms returns everything in a repository that names a program which git may run, or is
// one.
func namedPrograms(repo agency.Repo, list []setting) string {
	var named strings.Builder
	for _, s := range list {
		if s.in(programs) || s.in(elsewhere) {
			fmt.Fprintf(&named, "%s\n%s\x00", s.key, s.value)
		}
	}
	for _, name := range CheckoutHooks {
		if data, err := os.ReadFile(filepath.Join(repo.CommonDir, "hooks", name)); err == nil { // git follows links, too
			fmt.Fprintf(&named, "%s\n%s\x00", name, digest(string(data)))
		}
	}
	return named.String()
}

// configuration returns the text that a run recorded. When it is missing or was changed,
// configuration returns the repository's own settings without programs. It fails when it cannot
// read a record: without the recorded filters, git would save files as they are, such as secrets
// that a filter encrypts.
func (g *program) configuration(ctx context.Context, repo agency.Repo) (string, error) {
	if repo.GitConfig != "" {
		data, err := file.ReadBeneath(g.records, repo.GitConfig, 1<<20)
		if err == nil && digest(string(data)) == repo.GitConfig {
			return string(data), nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("read the recorded git configuration of %s: %w", repo.Root, err)
		}
	}
	list, err := g.settings(ctx, repo.CommonDir)
	return format(neutral(list)), err
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
