#pragma once

#include <cstdint>
#include <string>

namespace gainlens::cli {

/// Options that every subcommand takes.
struct GlobalOptions {
  std::int64_t threads = 0;  ///< 0: all cores of the machine
  std::string device = "cpu";
  bool quiet = false;  ///< no progress on stderr
  bool json = false;   ///< results on stdout as JSON
  std::uint64_t seed = 0;
};

}  // namespace gainlens::cli
