#!/bin/sh
# Installs the build below a prefix of its own and builds examples/ against it as a user does. Runs the installed
# program and both examples.
# usage: examples.sh CMAKE SOURCE_DIR BUILD_DIR WORK_DIR GENERATOR C_COMPILER CXX_COMPILER [COMPILER_LAUNCHER]
# WORK_DIR is removed at the start, and at the end of a test that passes. It has a fixed name so that ccache can help.
set -eu
cmake=$1 source=$2 build=$3 work=$4 generator=$5 cc=$6 cxx=$7
case ${8-} in *NOTFOUND) launcher= ;; *) launcher=${8-} ;; esac
prefix=$work/prefix

fail() { echo "FAILED: $*"; exit 1; }
quietly() { "$@" >"$work/log" 2>&1 || { cat "$work/log"; fail "$*"; }; }
# expect COUNT REGEX FILE: exactly COUNT lines of the file match.
expect() {
  count=$(grep -Ecx "$2" "$3") || true
  [ "$count" -eq "$1" ] || { cat "$3"; fail "$count lines instead of $1 match '$2'"; }
}

rm -rf "$work"
mkdir -p "$work"
cd "$work"
unset DESTDIR
quietly "$cmake" --install "$build" --prefix "$prefix"

# Nothing that is for our own build alone reaches users: no folder, no flag.
find "$prefix" -name 'gainlensTargets*.cmake' -exec cat {} + >targets
grep -q gainlens::reports targets || fail "no package below $prefix"
! grep -nF -e "$source/" -e "$build/" -e -Werror -e -Wall -e -ffp-contract -e pch targets || fail "see the lines above"

# Not optimised: nearly all of the time of this test is compilation.
quietly "$cmake" -S "$source/examples" -B examples -G "$generator" -DCMAKE_PREFIX_PATH="$prefix" \
  -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 \
  -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_CXX_COMPILER_LAUNCHER="$launcher"
quietly "$cmake" --build examples --parallel 1

quietly "$prefix/bin/gainlens" --version
# A build with Arrow installs the module that reads Parquet, and the installed program loads that one.
module=$(find "$prefix" -name gainlens-parquet.so)
if [ -n "$module" ]; then
  LD_DEBUG=files "$prefix/bin/gainlens" inspect "$source/tests/data/golden/small.parquet" >parquet 2>loaded ||
    { cat parquet; fail "inspect of a Parquet file"; }
  expect 1 'format +parquet' parquet
  grep -qF "file=$module" loaded || fail "$module was not loaded"
fi
examples/tensor_statistics >statistics || fail "tensor_statistics"
expect 4 'head [0-3]: n_eff [0-9]+\.[0-9] of 256 keys, K (0|1)\.[0-9]{3}, BOS mass 0\.[0-9]{4}' statistics
examples/checkpoint_hook "$source/data/demo/gated" >values || fail "checkpoint_hook"
expect 10 'blocks\.[0-9]\.attn\.hook_v \[1, [0-9]+, 3, 16\] mean norm [0-9]+\.[0-9]{3}' values
expect 1 'most likely next token: [0-9]+' values
cat statistics values
cd /
rm -rf "$work"
