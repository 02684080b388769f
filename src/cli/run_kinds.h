#pragma once

#include "analyses/checks/check.h"
#include "cli/check_parts.h"
#include "cli/compare_parts.h"
#include "cli/report_parts.h"
#include "runfile/run_kind.h"

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// What `check`, `report` and `compare` do with each kind of run. (`inspect` needs no libtorch: inspect_runs.h.)

namespace gainlens::cli {

/// One kind of run. Where a kind has nothing of its own, the reader of sweeps says what is needed.
struct RunCommands {
  runfile::RunKind kind;

  std::vector<analyses::CheckResult> (*check)(const std::filesystem::path& run) = nullptr;
  /// One training of the run. Null: the kind has none.
  std::vector<analyses::CheckResult> (*check_training)(const GivenTraining& training) = nullptr;

  void (*report)(const ReportArguments& arguments, const GlobalOptions& global) = nullptr;
  std::span<const std::string_view> report_options = {};  ///< those that it takes, of what not every kind takes
  /// Refuses several runs of this kind, or such runs beside others. Null: by one message for all kinds.
  void (*refuse_several)(const std::vector<std::string>& own, const std::vector<std::string>& others) = nullptr;

  void (*compare)(const CompareArguments& arguments, const GlobalOptions& global) = nullptr;
  std::span<const std::string_view> compare_options = {};  ///< as report_options
  /// Why such runs are not compared, behind "compare: RUN ". {} stands for the run. Empty: `compare` takes them.
  std::string_view instead_of_compare = {};
};

/// THE list, one entry for each kind. The first, of sweeps, stands for what is no run too: it takes all options.
std::span<const RunCommands* const> run_kinds();
/// The entry of the run at a path.
/// @throws InvalidArgument  as runfile::identify()
const RunCommands& commands_of(const std::filesystem::path& path);
}  // namespace gainlens::cli
