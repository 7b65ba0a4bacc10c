#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# smoke.sh PYTHON WHEEL: installs the wheel with what it asks for into an empty environment, and tries it.
set -euo pipefail
python=$1 wheel=$2
here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

cp "$here/smoke.py" "$folder"
wheel=$(realpath "$wheel")
"$python" -m venv "$folder/empty"
hash=$(sha256sum "$wheel" | cut -d' ' -f1)
echo "jaxport[check] @ file://$wheel --hash=sha256:$hash" >"$folder/wheel.txt"
# What the wheel asks for beyond the lock would lack a hash, which is an error.
for requirements in "$here/../requirements/lock/check.txt" "$folder/wheel.txt"; do
  "$folder/empty/bin/python" -m pip install --quiet --disable-pip-version-check --prefer-binary --no-compile \
    --require-hashes --requirement "$requirements"
done
cd "$folder"
empty/bin/python -W error smoke.py

# One wheel runs on any Linux: its libraries need the C and C++ libraries and nothing else of the system.
if command -v ldd >/dev/null; then
  find empty/lib*/python*/site-packages/jaxport* -name '*.so*' -exec ldd {} + >needed
  grep -q 'libc\.so' needed
  if grep '=>' needed | grep -vE '^\s*lib(c|m|stdc\+\+|gcc_s)\.so'; then
    echo "the wheel needs these libraries of the system" >&2
    exit 1
  fi
fi
