#!/bin/sh
# The picture of the README: what agency ls --watch shows of four scripted agents, from the real program.
# usage: picture.sh AGENCY > docs/ls.svg
set -eu

here=$(cd "$(dirname "$0")/.." && pwd)
agency=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
root=$(mktemp -d "${TMPDIR:-/tmp}/agency-picture.XXXXXX")
home=$HOME
export HOME="$root" AGENCY_HOME="$root/data" AGENCY_CONFIG="$root/config.toml" TERM=xterm-256color
unset AGENCY_SOCKET NO_COLOR TMUX 2>/dev/null || true
end() {
  "$agency" stop login docs >/dev/null 2>&1 || true
  "$agency" daemon stop >/dev/null 2>&1 || true
  tmux -S "$root/tmux" kill-server 2>/dev/null || true
  tmux -S "$root/screen" kill-server 2>/dev/null || true
  rm -rf "$root"
}
trap end EXIT
cat >"$AGENCY_CONFIG" <<TOML
[defaults]
runner = "scripted"

[runners.custom.scripted]
exec = "$here/test/agent/agent.sh"
default_args = ["{prompt_file}"]

[tmux]
socket = "$root/tmux"
TOML
git init --quiet "$root/project"
cd "$root/project"
git -c user.name=demo -c user.email=demo@example.invalid commit --quiet --allow-empty -m first

run() { "$agency" run "$@" 2>/dev/null; }
run --name login --prompt 'ask Which auth library, the old one or the new one?' >/dev/null
run --name docs --prompt 'work Rewriting the install chapter
wait-file never' >/dev/null
run --name tests --prompt 'write flaky_test.go fixed
ready The flaky test waits for the server now | go test ./...' >/dev/null
run --name build --prompt 'exit 1' >/dev/null
"$agency" wait login --for needs-input --timeout 30s >/dev/null || true
"$agency" wait tests build --timeout 30s >/dev/null || true

tmux -S "$root/screen" -f /dev/null new-session -d -x 92 -y 7 "$agency ls --watch"
for _ in $(seq 100); do
  if tmux -S "$root/screen" capture-pane -ep | grep -q 'build'; then break; fi
  sleep 0.1
done
{ printf '\033[2m$ agency ls --watch\033[0m\n'; tmux -S "$root/screen" capture-pane -ep; } | sed -e :a -e '/^\n*$/{$d;N;ba' -e '}' >"$root/screen.txt"
cd "$here" && HOME=$home go run ./test/picture "agency ls --watch: four runs, one of them needs input" <"$root/screen.txt"
