#pragma once

#include "bench/attention_case.h"
#include "bench/methods.h"
#include "bench/timing.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace gainlens::bench {

/// What the command line asks for.
struct BenchOptions {
  std::vector<AttentionCase> cases;
  MethodChoice choice;
  RunBudget budget;
  std::int64_t threads = 0;                   ///< 0: as many as libtorch takes
  bool ratio = false;                         ///< measure one case; the last line is its ratio
  bool errors = false;                        ///< show the table of errors instead
  std::vector<std::int64_t> error_lengths;    ///< not empty: show the errors of S in texts of these lengths
  bool roofline = false;                      ///< also measure the rate of a copy
  std::optional<std::string> json;            ///< file, or "-" for standard output instead of the tables
  std::optional<std::filesystem::path> from;  ///< measure nothing, read a file that --json wrote
  std::optional<std::filesystem::path> plot;  ///< folder for the figures
};

/// Reads the command line. Empty after --help, which prints the help.
/// @throws InvalidArgument  an option is unknown or out of its range; two options exclude each other
std::optional<BenchOptions> parse_options(int argc, const char* const* argv);

}  // namespace gainlens::bench
