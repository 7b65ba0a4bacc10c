#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh FOLDER: compiles run.cpp, runs the model that `python -m examples.cpp FOLDER` wrote, and compares
# with JAX. Needs a C++ compiler and ONNX Runtime's header and library (Debian 13: libonnxruntime-dev).
set -euo pipefail
folder=$1
here=$(cd "$(dirname "$0")" && pwd)

read -ra flags <<<"$(pkg-config --cflags --libs libonnxruntime)"
"${CXX:-c++}" -std=c++20 -O1 -Wall -Wextra -Werror "$here/run.cpp" "${flags[@]}" -o "$folder/run"
# Debian's library says at its start, on standard error, that it registers every schema twice.
"$folder/run" "$folder/model.onnx" "$folder/x.bin" 2> >(grep -v "^Schema error\|^$" >&2) >"$folder/printed.txt"

paste "$folder/printed.txt" "$folder/expected.txt" | awk '
  NR == 1 { if ($1 " " $2 != $3 " " $4) { print "another output: " $0; exit 1 } next }
  { d = $1 - $2; d = d < 0 ? -d : d; if (d > worst) worst = d; if (NF != 2 || d > 1e-4) bad = 1 }
  END { printf "%d numbers, at most %.1e from JAX\n", NR - 1, worst; exit bad || NR < 2 }'
