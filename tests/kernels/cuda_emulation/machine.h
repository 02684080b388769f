#pragma once

#include <cstddef>
#include <functional>

// A thread block on the host: every CUDA thread is a fiber of the one thread that calls `run_block`, and they change
// places only where they have to wait for one another. Shared memory starts as NaN.

namespace gainlens::kernels::device {

struct Dimensions {
  int x, y;
};

/// Runs `body` once for each of `threads` threads (a multiple of 32) of every block of the grid, one block after
/// another.
/// @throws InternalError  a thread ended, or waits at another place, while others wait for it
void run_grid(Dimensions grid, int threads, std::size_t shared_bytes, const std::function<void()>& body);

// What follows may be called from within `body` only.

int thread_index();
int block_x();
int block_y();
int grid_y();
char* shared_memory();

/// Waits until all threads of the block (or the 32 of the warp) have come here.
void block_barrier();
void warp_barrier();

/// All lanes of the warp hand in an argument; the last to come runs `compute` over the arguments of lanes 0..31, in
/// which it leaves the results.
void warp_together(void* argument, const std::function<void(void* const* arguments)>& compute);

/// Copies that have been started but not waited for: bytes move when `copy_async_wait` lets them, and until then the
/// destination is NaN.
void copy_async_16(void* shared, const void* global, bool inside);
void copy_async_commit();
void copy_async_wait_for(int pending);

}  // namespace gainlens::kernels::device
