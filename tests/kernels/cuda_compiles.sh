#!/bin/sh
# Compiles the CUDA part where there is an nvcc, in a build folder of its own; needs no GPU. 77 is CTest's SKIPPED.
# usage: cuda_compiles.sh CMAKE NVCC SOURCE_DIR BUILD_DIR TORCH_ROOT
set -e
test -x "$2" || { echo "SKIPPED: no nvcc (CUDA toolkit) on this machine"; exit 77; }
test -e "$5/lib/libc10_cuda.so" || { echo "SKIPPED: libtorch under $5 has no CUDA part"; exit 77; }
cd "$3"
"$1" --preset cuda -B "$4" -DGAINLENS_TESTS=OFF -DGAINLENS_NVCC="$2" -DGAINLENS_TORCH_ROOT="$5" >"$4.log" 2>&1 || { cat "$4.log"; exit 1; }
exec "$1" --build "$4" --target gainlens_kernels_cuda --parallel 1
