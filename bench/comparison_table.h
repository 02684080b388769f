#pragma once

#include "bench/comparison.h"

#include <string>

namespace gainlens::bench {

/// "AMD EPYC, AVX2, 2 threads, libtorch 2.11.0".
std::string machine_line(const Machine& machine);

/// The meaning of the columns of case_table, in a few lines.
std::string table_notes();

/// One case: a line that names the shape, then a line for each method. It has the median of the seconds, half the
/// distance between their quartiles in per cent, GFLOP/s, the ratio to SDPA and the peak memory. If a backend is
/// missing, it has "-" and the reason.
std::string case_table(const CaseResult& result);

/// A table with a line for each case that measured a matrix product. The line has two things: the share of the rate of
/// that product which each method reaches, and the share of the time that the least memory traffic would take at the
/// rate of a copy. Empty without `copy_rate`.
std::string roofline_table(const Comparison& comparison);

}  // namespace gainlens::bench
