#pragma once

#include <cstddef>
#include <functional>

// A CUDA thread block on the host. Every CUDA thread is a fiber of the one thread that calls `run_grid`. The fibers
// take turns only where they must wait for each other. Shared memory starts as NaN.

namespace gainlens::kernels::device {

struct Dimensions {
  int x, y;
};

/// Runs `body` once for each of `threads` threads (a multiple of 32) of every block of the grid, one block after the
/// other.
/// @throws InternalError  a thread ended, or waits at another point, while others wait for it
void run_grid(Dimensions grid, int threads, std::size_t shared_bytes, const std::function<void()>& body);

// The following functions may be called only from within `body`.

int thread_index();
int block_x();
int block_y();
int grid_y();
char* shared_memory();

/// Waits until all threads of the block (or the 32 threads of the warp) have reached this point.
void block_barrier();
void warp_barrier();

/// All lanes of the warp pass an argument. The last lane to arrive runs `compute` over the arguments of lanes 0..31,
/// which also receive the results.
void warp_together(void* argument, const std::function<void(void* const* arguments)>& compute);

/// Starts an asynchronous copy. The bytes are copied when `copy_async_wait` allows it. Until then the destination is
/// NaN.
void copy_async_16(void* shared, const void* global, bool inside);
void copy_async_commit();
void copy_async_wait_for(int pending);

}  // namespace gainlens::kernels::device
