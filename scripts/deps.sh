#!/bin/sh
# Installs the commands that are its arguments where they are missing and that is allowed; otherwise says what to type.
set -eu

missing=
for tool in "$@"; do
  command -v "$tool" >/dev/null 2>&1 || missing="$missing $tool"
done
[ -n "$missing" ] || exit 0

# packages FROM=TO...: the packages of the missing commands, where their names differ.
packages() {
  for tool in $missing; do
    package=$tool
    for pair in "$@"; do
      [ "${pair%%=*}" != "$tool" ] || package=${pair#*=}
    done
    printf ' %s' "$package"
  done
}

if command -v apt-get >/dev/null 2>&1; then
  install="apt-get install -y$(packages vi=vim-tiny top=procps bwrap=bubblewrap dockerd=docker.io busybox=busybox-static)"
  prepare="apt-get update"
elif command -v dnf >/dev/null 2>&1; then
  install="dnf install -y$(packages vi=vim-minimal top=procps-ng bwrap=bubblewrap dockerd=moby-engine)"
  prepare=true
elif command -v brew >/dev/null 2>&1; then
  # brew refuses to be run by root and needs no other rights.
  exec brew install $(packages vi=vim)
else
  echo "Missing:$missing. Install them with your system's package manager and try again." >&2
  exit 1
fi

if [ "$(id -u)" = 0 ]; then
  as_root=
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
  as_root=sudo
else
  echo "Missing:$missing. Type this and try again:" >&2
  echo "  sudo $install" >&2
  exit 1
fi
echo "installing$missing" >&2
$as_root $prepare >/dev/null
$as_root $install >/dev/null
