#include "cli/run_kinds.h"

namespace gainlens::cli {

std::span<const RunCommands* const> run_kinds() {
#define GAINLENS_KIND(kind) &kind##_commands,
  static constexpr const RunCommands* kinds[] = {GAINLENS_RUN_KINDS(GAINLENS_KIND)};
#undef GAINLENS_KIND
  return kinds;
}

const RunCommands& commands_of(const std::filesystem::path& path) {
  const auto run = runfile::identify(path);
  return *run_kinds()[run ? static_cast<std::size_t>(run->kind) : 0];
}

}  // namespace gainlens::cli
