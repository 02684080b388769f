#pragma once

namespace gainlens::bench {

/// Bytes per second, read and written, when libtorch's threads copy a tensor that is far larger than the caches. The
/// median of several copies.
double measured_copy_rate();

}  // namespace gainlens::bench
