#!/bin/sh
# Compiles the CUDA part in a build folder of its own, if the machine has nvcc. Needs no GPU. Exit code 77 means SKIPPED
# in CTest.
# usage: cuda_compiles.sh CMAKE NVCC SOURCE_DIR BUILD_DIR TORCH_ROOT
set -e
test -x "$2" || { echo "SKIPPED: no nvcc (CUDA toolkit) on this machine"; exit 77; }
test -e "$5/lib/libc10_cuda.so" || { echo "SKIPPED: libtorch under $5 has no CUDA part"; exit 77; }
cd "$3"
"$1" --preset cuda -B "$4" -DGAINLENS_TESTS=OFF -DGAINLENS_NVCC="$2" -DGAINLENS_TORCH_ROOT="$5" >"$4.log" 2>&1 ||
  { cat "$4.log"; exit 1; }
exec "$1" --build "$4" --target gainlens_kernels_cuda --parallel 1
