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
  bool ratio = false;                         ///< the last line is the ratio of the one case
  bool errors = false;                        ///< the table of errors instead
  std::vector<std::int64_t> error_lengths;    ///< where not empty: that of S in long texts
  bool roofline = false;                      ///< measure the rate of a copy as well
  std::optional<std::string> json;            ///< file, or "-" for standard output in place of the tables
  std::optional<std::filesystem::path> from;  ///< measure nothing, read what --json wrote
  std::optional<std::filesystem::path> plot;  ///< folder for the figures
};

/// Empty after --help, which has been printed.
/// @throws InvalidArgument  an option is unknown or out of its range, or two do not go together
std::optional<BenchOptions> parse_options(int argc, const char* const* argv);

}  // namespace gainlens::bench
