#pragma once

#include <filesystem>
#include <string>

namespace gainlens::cli {

/// What a person is told who ends a long command by Ctrl-C (SIGINT) or by SIGTERM. While the object exists, these
/// signals print one line on stderr and then end the program, as they always do. A signal that is ignored stays so.
/// One object at a time.
class ScopedInterruption {
 public:
  /// @param out    folder that keeps what was done, as the user gave it; empty: nothing is kept
  /// @param what   it keeps: "every finished chunk"
  /// @param begun  the file in it that exists as soon as there is something to continue
  /// @param tells  false: nothing is told, as in all processes of a group but one
  ScopedInterruption(const std::filesystem::path& out, const std::string& what, bool tells = true,
                     const std::filesystem::path& begun = "request.json");
  ScopedInterruption(const ScopedInterruption&) = delete;
  ScopedInterruption& operator=(const ScopedInterruption&) = delete;
  ~ScopedInterruption();

 private:
  std::string file_, continued_, lost_;
};

/// What a folder of trainings keeps.
inline constexpr const char* finished_trainings = "every finished training, and the last saved state of the others";

}  // namespace gainlens::cli
