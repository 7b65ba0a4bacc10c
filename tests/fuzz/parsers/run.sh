#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs libFuzzer programs one after the other: run.sh BUILD JAXPORT MINUTES NAME…
# A find is written to BUILD/finds and ends the run with an exit code that is not 0.
set -euo pipefail
build=$1 jaxport=$2 minutes=$3
shift 3
here=$(dirname "$0")
mkdir -p "$build/finds" "$build/seeds/jir" "$build/seeds/onnx"
# Folders have files of the same name, so a seed is named by its path.
golden=$here/../../golden
find "$golden" -name '*.jir' -printf '%P\n' | while read -r seed; do
  cp "$golden/$seed" "$build/seeds/jir/${seed//\//-}"
done
for program in "$build"/seeds/jir/*.jir; do
  "$jaxport" convert "$program" -o "$build/seeds/onnx/$(basename "$program" .jir).onnx" >/dev/null 2>&1 || true
done
for name in "$@"; do
  seeds=$build/seeds/jir
  [ "$name" != onnx ] || seeds=$build/seeds/onnx
  mkdir -p "$build/corpus/$name" "$here/corpus/$name"
  echo "fuzz_$name: $minutes minutes"
  nice -n 19 "$build/fuzz_$name" -max_total_time=$((minutes * 60)) -timeout=10 -rss_limit_mb=2048 \
    -max_len=8192 -artifact_prefix="$build/finds/$name-" -print_final_stats=1 \
    "$build/corpus/$name" "$here/corpus/$name" "$seeds" 2>"$build/$name.log" ||
    { tail -n 40 "$build/$name.log"; exit 1; }
  grep -E '^(Done|stat::number_of_executed_units)' "$build/$name.log"
done
