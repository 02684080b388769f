#pragma once

#include "analyses/arm_pairs.h"
#include "analyses/seed_unit.h"
#include "cli/given_run.h"
#include "cli/global_options.h"
#include "cli/interaction_options.h"
#include "core/check.h"
#include "core/nearest.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// What the comparisons of all kinds of runs share.

namespace gainlens::cli {

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

}  // namespace gainlens::cli
