#!/bin/sh
# reproducible.sh: the same commit gives the same files in two folders, and the archives have what they
# should. As root, the package is then installed, used for a run, and purged.
set -eu
folder=$(mktemp -d)
installed=
agency=/usr/bin/agency
export AGENCY_HOME="$folder/data" AGENCY_CONFIG="$folder/config.toml"
unset AGENCY_SOCKET TMUX 2>/dev/null || true

# end leaves nothing behind, wherever the script ends.
end() {
    status=$?
    if [ -n "$installed" ]; then
        (cd "$folder/project" && "$agency" stop --all && "$agency" daemon stop) >/dev/null 2>&1 || true
        tmux -S "$folder/tmux" kill-server 2>/dev/null || true
        dpkg --purge agency >/dev/null 2>&1 || true
    fi
    rm -rf "$folder"
    exit "$status"
}
trap end EXIT
trap 'exit 130' INT TERM

for at in one another/deeper; do
    git clone -q . "$folder/$at"
    (cd "$folder/$at" && sh scripts/dist.sh 0.0.1 >/dev/null)
done
dist=$folder/one/dist
diff "$dist/SHA256SUMS" "$folder/another/deeper/dist/SHA256SUMS"
echo "the same bytes in both folders"

# Each archive has a program, manual pages and completions; its list has each module of the program.
for system in linux_amd64 linux_arm64 darwin_amd64 darwin_arm64; do
    name=agency_0.0.1_$system
    tar -xzf "$dist/$name.tar.gz" -C "$folder"
    test -x "$folder/$name/agency"
    gzip -dc "$folder/$name/man/agency-run.1.gz" | grep -q '^\.TH'
    for shell in bash zsh fish; do grep -q agency "$folder/$name/completions/agency.$shell"; done
    go version -m "$folder/$name/agency" | awk '$1 == "dep" { print $2 "@" $3 }' | sort >"$folder/modules"
    sed -n 's|.* purl pkg:golang/||p' "$dist/$name.spdx" | sort >"$folder/listed"
    test -s "$folder/modules"
    diff "$folder/modules" "$folder/listed"
    go version -m "$folder/$name/agency" | grep -q "GOOS=${system%_*}"
    go version -m "$folder/$name/agency" | grep -q "GOARCH=${system#*_}"
done
echo "each archive has manual pages and completions, and each list all modules"

if [ "$(id -u)" != 0 ] || ! command -v dpkg >/dev/null; then
    echo "the package is not tried: that needs root and dpkg"
    exit 0
fi
if [ -e "$agency" ]; then
    echo "the package is not tried: $agency is there already"
    exit 0
fi
installed=yes
dpkg --install --force-depends "$dist/agency_0.0.1_linux_$(dpkg --print-architecture).deb"
test "$("$agency" version)" = "agency 0.0.1"
dpkg --listfiles agency | grep -qx /usr/share/man/man1/agency-run.1.gz

# A run in a repository, data root and tmux server of its own.
printf '[tmux]\nsocket = "%s"\n' "$folder/tmux" >"$AGENCY_CONFIG"
git init -q -b main "$folder/project"
cd "$folder/project"
git config user.name packager
git config user.email packager@example.invalid
git commit -q --allow-empty -m first
"$agency" run --runner shell --name used --prompt 'echo used >used.txt; git add . && git commit -qm used'
"$agency" wait used --timeout 60s
"$agency" merge used
grep -qx used used.txt
"$agency" daemon stop
tmux -S "$folder/tmux" kill-server 2>/dev/null || true

cd /
dpkg --purge agency
installed=
test ! -e "$agency"
test ! -e /usr/share/man/man1/agency-run.1.gz
echo "the package was installed, used and purged"
