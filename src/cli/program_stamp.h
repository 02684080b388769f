#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace gainlens::cli {

/// What a program's file says of itself, in an ELF section of its own.
struct ProgramStamp {
  std::string program;  ///< "gainlens" or "gainlens-compute"
  std::string build;    ///< version and a hash of the sources: "0.5.0 0123456789abcdef"

  bool operator==(const ProgramStamp&) const = default;
};

/// The stamp of the program that runs.
ProgramStamp own_stamp();

/// The stamp of a program's file, which need not be a program.
/// @throws RunFailed  it cannot be read, is cut short, or has no stamp
ProgramStamp stamp_of(const std::filesystem::path& program);

}  // namespace gainlens::cli
