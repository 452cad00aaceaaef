#!/bin/sh
# The demo: three scripted agents at once on a clone of this repository. One finishes, one asks, one fails.
# Everything is in one temporary folder, with a data root and a tmux server of its own.
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
agency=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
root=$(mktemp -d /tmp/agency-demo.XXXXXX) # short, for the paths of sockets and for the hints

export AGENCY_HOME="$root/data" AGENCY_CONFIG="$root/config.toml"
unset AGENCY_SOCKET agency_SOCKET agency_CONFIG 2>/dev/null || true
cat >"$AGENCY_CONFIG" <<TOML
[defaults]
runner = "scripted"

[runners.custom.scripted]
exec = "$here/test/agent/agent.sh"
default_args = ["{prompt_file}"]

[tmux]
socket = "$root/tmux"
TOML

cat >"$root/env" <<ENV
cd '$root/project'
export AGENCY_HOME='$AGENCY_HOME' AGENCY_CONFIG='$AGENCY_CONFIG' PATH='$(dirname "$agency")':"\$PATH"
ENV
cat >"$root/end" <<END
. '$root/env'
agency stop --all
agency daemon stop || exit # what still runs needs the folder
tmux -S '$root/tmux' kill-server 2>/dev/null
cd / && rm -rf '$root'
END
# A demo that fails or is interrupted leaves nothing behind.
trap 'kill "${watch:-}" 2>/dev/null; sh "$root/end" >/dev/null 2>&1' EXIT
trap 'exit 130' INT TERM

git clone --quiet -- "$here" "$root/project"
cd "$root/project"
# agency merge makes a commit, and a new machine has no author for it.
git var GIT_AUTHOR_IDENT >/dev/null 2>&1 || { git config user.name Demo && git config user.email demo@example.invalid; }

# start shows what run says to people only when it fails.
start() {
  "$agency" run "$@" 2>"$root/run.err" || { cat "$root/run.err" >&2; exit 1; }
}

echo "starting three agents on a clone of this repository, in $root"
start --name finish --prompt 'say reading the README
work Reading the README
pause 2
work Writing the note
write NOTE.md agency was here
commit Add a note
pause 2
ready Added NOTE.md | cat NOTE.md'

start --name asker --prompt 'work Looking at the login code
pause 3
ask Which auth library, the old one or the new one?
ready Login uses the chosen library | go test ./...'

start --name breaks --prompt 'work Compiling
pause 4
say cannot find module
exit 1'

echo
"$agency" ls --watch &
watch=$!
"$agency" wait finish asker breaks --timeout 60s >/dev/null || true
sleep 1
kill "$watch" 2>/dev/null || true
wait "$watch" 2>/dev/null || true
trap - EXIT

cat <<TEXT

All three are settled: one offers its work, one asks you something, one failed.
Next:   . $root/env; agency answer asker; agency merge finish
End it: sh $root/end
TEXT
