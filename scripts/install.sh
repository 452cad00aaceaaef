#!/bin/sh
# install.sh PROGRAM PREFIX: copies the program to PREFIX/bin, and its manual pages and completions to PREFIX/share.
set -eu
program=$1 prefix=$2
install -d "$prefix/bin" "$prefix/share/man/man1" "$prefix/share/bash-completion/completions" \
    "$prefix/share/zsh/site-functions" "$prefix/share/fish/vendor_completions.d"
"$program" docs man "$prefix/share/man/man1" >/dev/null
"$program" completion bash >"$prefix/share/bash-completion/completions/agency"
"$program" completion zsh >"$prefix/share/zsh/site-functions/_agency"
"$program" completion fish >"$prefix/share/fish/vendor_completions.d/agency.fish"
install -m 755 "$program" "$prefix/bin/agency"
echo "agency is in $prefix/bin, its manual pages and completions are in $prefix/share"
