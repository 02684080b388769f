#pragma once

#include "bench/comparison.h"

#include <string>

namespace gainlens::bench {

/// "AMD EPYC, AVX2, 2 threads, libtorch 2.11.0".
std::string machine_line(const Machine& machine);

/// What the columns of case_table mean, in a few lines.
std::string table_notes();

/// One case: a line that names the shape, and a line for each method with median seconds, half the distance between the
/// quartiles in per cent, GFLOP/s, ratio to SDPA and peak memory; "-" with the reason where a backend is missing.
std::string case_table(const CaseResult& result);

/// What share of the matrix product's rate the methods reach, a line for each case that measured one, and how much of
/// the time the least traffic to memory would take at the rate of a copy. Empty without `copy_rate`.
std::string roofline_table(const Comparison& comparison);

}  // namespace gainlens::bench
