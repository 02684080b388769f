#pragma once

namespace gainlens::bench {

/// Bytes per second, read and written, of copying a tensor far larger than the caches with libtorch's threads: median
/// of several copies.
double measured_copy_rate();

}  // namespace gainlens::bench
