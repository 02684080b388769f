#pragma once

#include "analyses/arm_pairs.h"
#include "analyses/checks/training_checks.h"
#include "analyses/options.h"
#include "analyses/seed_unit.h"
#include "cli/application.h"
#include "cli/command_options.h"
#include "cli/given_run.h"
#include "core/check.h"
#include "core/nearest.h"
#include "reports/made_report.h"
#include "runfile/checksums.h"
#include "runfile/intervention_run.h"
#include "runfile/run_kind.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// What `check`, `report` and `compare` do with each kind of run. (What `inspect` does needs no libtorch:
// inspect_parts.h.)

namespace gainlens::cli {

// What the checks of trainings share.

/// The folder of one training of a run.
struct GivenTraining {
  std::filesystem::path run, folder;
  std::string label;  ///< "ARM", or "ARM/VARIANT"
  std::uint64_t seed = 0;
};

/// Notes what the files of trainings say.
/// @param proof  adds what speaks against them, or throws it; returns what was not compared, as sentences
void note_files(analyses::CheckedTrainings& checked,
                const std::function<std::string(std::vector<runfile::FileFault>& faults)>& proof);

// What the reports of all kinds of runs share.

struct ReportArguments {
  std::vector<std::string> runs;
  std::string out;
  std::vector<std::string> names;
  std::optional<std::string> at;
  std::optional<std::int64_t> deep_layers;
  double theory_margin = analyses::Options{}.theory_margin;
  std::optional<std::string> lengths;
  std::string style;
  std::string axis;
  /// Of a sweep without a value: the option alone asks for a page. Of a recommender run the name of a data set.
  std::optional<std::string> paper;
};

/// The folder of a run, given as the folder or as its run.h5.
std::filesystem::path folder_of_run(const std::string& run);
/// The folder that the report is written to.
/// @throws InvalidArgument  it is that of a run; several runs, and --out is missing
std::filesystem::path folder_to_write(const ReportArguments& arguments);
reports::Writing writing_of(const ReportArguments& arguments);
/// Says what was written, and ends with an error if a section is missing.
/// @throws RunFailed  as check_made()
void finish_report(const reports::WrittenReport& written, const std::filesystem::path& out, bool json);

// What the comparisons of all kinds of runs share.

struct CompareArguments {
  std::vector<std::string> runs;
  std::vector<std::string> metrics;  // none: those of default_metrics, or all scores of an experiment
  std::string edges = "quintiles";
  std::vector<std::string> paper;
  analyses::Pairing pairing;
  std::string out;
  std::int64_t resamples = analyses::Resamples{}.count;
  std::optional<double> margin;
  bool validation = false;
  InteractionArguments data;  // of files of ranks
};

/// The metrics of recommenders, unless others are named.
inline const std::vector<std::string> default_metrics = {"hr@10", "ndcg@10", "mrr"};
/// The options that comparisons of recommenders alone take.
inline constexpr std::string_view options_of_recommenders[] = {"--edges", "--paper", "--data", "--validation",
                                                               "--deterministic"};

/// "RUN" or "RUN:ARM". A path that exists is a run, whatever it contains.
std::pair<std::string, std::string> parse_run(const std::string& text);
/// Whether the text on the command line is a file of ranks, and no run.
bool is_ranks(const std::string& text);

/// The arms that the command line names, and what could not be proven of their runs.
template <typename Run>
struct GivenArms {
  std::vector<analyses::ArmOf<Run>> arms;
  std::vector<std::pair<std::filesystem::path, std::vector<std::string>>> unproven;  ///< of each run, once

  /// "RUN: sentence" of all runs.
  std::vector<std::string> sentences() const {
    std::vector<std::string> all;
    for (const auto& [path, own] : unproven)
      for (const std::string& sentence : own) all.push_back(printable(path.string()) + ": " + sentence);
    return all;
  }
  /// Warns of every run that is not proven. To be called when nothing is refused any more.
  void tell() const {
    for (const auto& [path, sentences] : unproven) tell_unproven(path, sentences);
  }
};

/// Reads the arms in the order of the command line; of a run that is given without one, all arms.
template <typename Run>
GivenArms<Run> read_arms(const std::vector<std::string>& texts,
                         const std::function<ProvenTrainings<Run>(const std::filesystem::path&)>& read) {
  GivenArms<Run> given;
  std::map<std::filesystem::path, std::shared_ptr<const Run>> runs;
  for (const std::string& text : texts) {
    const auto [path, wanted] = parse_run(text);
    auto& run = runs[std::filesystem::weakly_canonical(path)];
    if (run == nullptr) {
      ProvenTrainings<Run> proven = read(path);
      run = proven.run;
      given.unproven.emplace_back(path, std::move(proven.unproven));
    }
    CHECK(wanted.empty() || std::find(run->arms.begin(), run->arms.end(), wanted) != run->arms.end(),
          "{}: has no arm '{}', but {}{}", printable(path), printable(wanted, 60), fmt::join(run->arms, ", "),
          did_you_mean(wanted, run->arms));
    for (std::size_t i = 0; i < run->arms.size(); ++i) {
      if (!wanted.empty() && run->arms[i] != wanted) continue;
      given.arms.push_back({path, run, i});
    }
  }
  analyses::name_arms(given.arms);
  return given;
}

/// Compares recommender runs, and files of ranks.
void compare_recommenders(const CompareArguments& arguments, const GlobalOptions& global);

/// What the losses of a run on a text are of: '8 documents of 512 tokens', or the last tokens of these.
/// @throws InvalidArgument  the stored request does not say it
std::string measured_tokens(const runfile::InterventionRun& run, const std::filesystem::path& path);

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

/// NAME_commands of each kind, in a file of the kind.
#define GAINLENS_COMMANDS(kind) extern const RunCommands kind##_commands;
GAINLENS_RUN_KINDS(GAINLENS_COMMANDS)
#undef GAINLENS_COMMANDS

/// All kinds. The first, of sweeps, stands for what is no run too: it takes all options.
std::span<const RunCommands* const> run_kinds();
/// The entry of the run at a path.
/// @throws InvalidArgument  as runfile::identify()
const RunCommands& commands_of(const std::filesystem::path& path);

}  // namespace gainlens::cli
