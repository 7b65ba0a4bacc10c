#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a command on a bare Debian 13 (Python 3.13, so the newest JAX), in a root that is made once.
#   debian13.sh ROOT COMMAND…      for example: debian13.sh build/debian13 make demo
# The command starts in a copy of this working tree, without what was built or installed here. What
# it builds and installs stays in the root for the next run; remove the root to start from nothing.
# Needs the rights of root, on Debian or Ubuntu.
set -euo pipefail

die() {
  echo "debian13: $*" >&2
  exit 1
}

# A root that is not complete has another name, so that an interrupted start is not taken for one.
make_root() {
  local root=$1
  command -v debootstrap >/dev/null || {
    apt-get update -qq </dev/null
    apt-get install -y -qq --no-install-recommends debootstrap </dev/null >/dev/null
  }
  echo "debian13: making $root"
  rm -rf "$root.part"
  mkdir -p "$(dirname "$root")"
  debootstrap --variant=minbase --include=ca-certificates,make,python3 trixie "$root.part" >"$root.log" ||
    die "debootstrap failed; see $root.log"
  mv "$root.part" "$root"
}

# The network as this machine is set up for it: names, certificates, settings of pip.
copy_network_settings() {
  local root=$1 file
  for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/ssl/certs/ca-certificates.crt; do
    if [ -e "$file" ]; then cp -L "$file" "$root$file"; fi
  done
}

# The files that git knows or would add. Only what differs is written, and is new to make then: what
# changed here while something was built there is older than the build, by the times of this tree.
copy_tree() {
  local to=$1 from=$1.new file
  rm -rf "$from"
  mkdir -p "$to" "$from"
  git ls-files -z --cached --others --exclude-standard |
    while IFS= read -r -d '' file; do if [ -e "$file" ]; then printf '%s\0' "$file"; fi; done |
    tar --null --files-from=- --create | tar --extract --directory "$from"
  (cd "$to" && find . \( -name build -o -name '.venv*' \) -prune -o -type f -print0) |
    while IFS= read -r -d '' file; do if [ ! -e "$from/$file" ]; then rm "$to/$file"; fi; done
  (cd "$from" && find . -type f -print0) |
    while IFS= read -r -d '' file; do
      cmp -s "$from/$file" "$to/$file" || install -D -m "$(stat -c %a "$from/$file")" "$from/$file" "$to/$file"
    done
  rm -rf "$from"
}

# Mounts belong to a namespace of their own and are gone when the command ends.
run_inside() {
  local root=$1 cache
  shift
  cache=${CCACHE_DIR:-$HOME/.cache/ccache}
  mkdir -p "$cache" "$root/ccache"
  # shellcheck disable=SC2016
  unshare --mount --pid --fork bash -euc '
    root=$1 cache=$2; shift 2
    mount --rbind /dev "$root/dev"
    mount -t proc proc "$root/proc"
    mount --bind "$cache" "$root/ccache"
    exec chroot "$root" bash -euc "cd /jaxport; exec \"\$@\"" run "$@"' \
    run "$root" "$cache" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
    DEBIAN_FRONTEND=noninteractive CCACHE_DIR=/ccache CI="${CI:-}" \
    http_proxy="${http_proxy:-}" https_proxy="${https_proxy:-}" no_proxy="${no_proxy:-}" "$@"
}

[ $# -ge 2 ] || die "usage: debian13.sh ROOT COMMAND…"
[ "$(id -u)" = 0 ] || die "making a root needs the rights of root; run it with sudo"
cd "$(dirname "$0")/.."
root=$(realpath -m "$1")
shift
[ -d "$root" ] || make_root "$root"
copy_network_settings "$root"
copy_tree "$root/jaxport"
run_inside "$root" "$@"
