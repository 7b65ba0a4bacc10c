#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prepares a machine for building and testing.
#   setup.sh system [lint|web|bench|count|fuzz]  system packages; 'lint' adds clang-tidy, 'web' Node.js and Chromium, 'bench'
#                                     Google Benchmark, 'count' Valgrind, 'fuzz' clang
#   setup.sh python                   prints the Python to use
#   setup.sh venv DIR REQUIREMENTS    a virtual environment with the packages of a file of requirements/lock
set -euo pipefail

die() {
  echo "setup: $*" >&2
  exit 1
}

# The first Python >= 3.11 among $PYTHON, python3 and the versioned names.
find_python() {
  local candidate
  for candidate in ${PYTHON:-} python3 python3.11 python3.12 python3.13; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
  die "no Python >= 3.11 found; install one or name it: make PYTHON=/path/to/python3.11 …"
}

# Packages that Debian's own Python lacks without its -dev and -venv parts.
python_packages() {
  local python=$1 version
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  "$python" -c 'import ensurepip, venv' 2>/dev/null || echo "python$version-venv"
  "$python" -c 'import os, sys, sysconfig
sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' ||
    echo "python$version-dev"
}

is_installed() {
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# Prints the packages that are missing. A tool counts as there when its command is.
missing_packages() {
  local python=$1 also=${2:-} package
  command -v g++ >/dev/null || echo g++
  command -v cmake >/dev/null || echo cmake
  command -v ninja >/dev/null || echo ninja-build
  command -v ccache >/dev/null || echo ccache
  if [ "$also" = lint ]; then command -v run-clang-tidy >/dev/null || echo clang-tidy; fi
  if [ "$also" = web ]; then
    command -v npm >/dev/null || echo npm
    command -v chromium >/dev/null || echo chromium
  fi
  if [ "$also" = bench ]; then is_installed libbenchmark-dev || echo libbenchmark-dev; fi
  if [ "$also" = count ]; then command -v valgrind >/dev/null || echo valgrind; fi
  # Debian 12's own clang, 14, cannot compile the ranges of libstdc++.
  if [ "$also" = fuzz ]; then
    command -v clang++-19 >/dev/null || echo clang-19 libclang-rt-19-dev | tr ' ' '\n'
  fi
  for package in libabsl-dev libfmt-dev libprotozero-dev libcli11-dev nlohmann-json3-dev \
    libgtest-dev libgmock-dev; do
    is_installed "$package" || echo "$package"
  done
  python_packages "$python"
}

install_packages() {
  local run=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null ||
      die "these packages are missing; ask an administrator to run: apt-get install $*"
    run=(sudo)
  fi
  echo "setup: installing $*"
  "${run[@]}" apt-get update -qq </dev/null
  "${run[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "$@" </dev/null >/dev/null
}

setup_system() {
  local python packages
  python=$(find_python)
  command -v dpkg-query >/dev/null ||
    die "this script knows Debian and Ubuntu only; README.md lists what to install elsewhere"
  mapfile -t packages < <(missing_packages "$python" "${1:-}")
  [ ${#packages[@]} -eq 0 ] || install_packages "${packages[@]}"
}

setup_venv() {
  local folder=$1 requirements=$2 python
  python=$(find_python)
  echo "setup: $folder from $requirements with $("$python" --version)"
  "$python" -m venv "$folder"
  "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --prefer-binary \
    --require-hashes --requirement "$requirements"
}

case "${1:-}" in
  system) setup_system "${2:-}" ;;
  python) find_python ;;
  venv) setup_venv "$2" "$3" ;;
  *) die "usage: setup.sh system [lint|web] | python | venv DIR REQUIREMENTS" ;;
esac
