#pragma once

namespace gainlens::bench {

/// Operations per second (two for each multiplication and addition) of float32 vector instructions that read and write
/// registers alone, on libtorch's threads: what no product of float32 can exceed. The median of several runs.
double measured_peak_rate();

}  // namespace gainlens::bench
