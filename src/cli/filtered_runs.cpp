#include "cli/filtered_runs.h"

#include "cli/command_options.h"
#include "cli/given_run.h"
#include "core/check.h"
#include "core/console.h"
#include "core/nearest.h"
#include "recommend/arm.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <set>
#include <system_error>
#include <utility>

namespace gainlens::cli {
namespace {

namespace fs = std::filesystem;

bool has_gain(const std::string& label) {
  const recommend::ArmParts* const parts = recommend::find_arm(runfile::arm_of(label));
  return parts != nullptr && parts->factor == recommend::AttentionFactor::kalman_gain;
}

/// Leaves out all other seeds, in every arm.
/// @param asked  seeds as they were given; none: every one
/// @throws InvalidArgument  one is no seed, or no arm has finished it (names those that are finished)
void choose_seeds(OpenedRun& opened, const std::vector<std::string>& asked) {
  std::set<std::uint64_t> finished;
  for (const std::string& arm : opened.run->arms) {
    const std::vector<std::uint64_t> arm_seeds = finished_seeds(opened, arm);
    finished.insert(arm_seeds.begin(), arm_seeds.end());
  }
  std::vector<std::uint64_t> chosen;
  for (const std::string& text : asked) {
    std::uint64_t seed = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed);
    CHECK(error == std::errc() && end == text.data() + text.size() && finished.contains(seed),
          "--only-seeds: '{}' is no finished seed of {}; those are {}", printable(text, 60), opened.shown(),
          fmt::join(finished, ", "));
    CHECK(std::ranges::count(chosen, seed) == 0, "--only-seeds: {} is given twice", seed);
    chosen.push_back(seed);
  }
  opened.only = std::move(chosen);
}

}  // namespace

std::string OpenedRun::shown() const {
  return printable(folder.string());
}

OpenedRun open_filtered_run(const fs::path& path, const std::string& what) {
  CHECK(fs::exists(path), "{}{}: no such folder", what, printable(path.string()));
  CHECK(
      fs::is_directory(path),
      "{}{}: is a file; give the folder of the run, in which the models are: DIR of gainlens train recommend --out DIR",
      what, printable(path.string()));
  return {path, given_recommend_run(path)};
}

void add_filter_options(CLI::App& command, FilterArguments& arguments) {
  command.add_option("run", arguments.run, "Folder of a run with --arm bft")->required();
  add_interaction_options(command, arguments.data);
  add_name_list(command, "--arm", arguments.arms,
                "Arms, separated by commas (default: every arm whose gain follows from precisions)");
  add_name_list(
      command, "--only-seeds", arguments.seeds,
      "Seeds to read, separated by commas, for example without one whose filter is not in force (default: all)");
}

void add_filter_page(CLI::App& command, FilterArguments& arguments) {
  command.add_option("--out", arguments.out,
                     "Folder for report.html, summary.json, the figure, and a table of the groups as CSV; made if it "
                     "does not exist");
}

OpenedRun open_filtered_run(const FilterArguments& arguments) {
  if (!arguments.out.empty()) check_holds_no_run(arguments.out);
  OpenedRun opened = open_filtered_run(fs::path(arguments.run));
  choose_seeds(opened, arguments.seeds);
  return opened;
}

std::vector<std::string> arms_with_gain(const OpenedRun& opened) {
  std::vector<std::string> found;
  std::ranges::copy_if(opened.run->arms, std::back_inserter(found), has_gain);
  CHECK(!found.empty(), "{}: has no filter: {} {}; train one with --arm bft", opened.shown(),
        opened.run->arms.size() == 1 ? "arm" : "arms",
        printable(fmt::format("{}", fmt::join(opened.run->arms, ", ")), 200));
  return found;
}

void check_arm_with_gain(const OpenedRun& opened, const std::string& arm) {
  CHECK(std::ranges::count(opened.run->arms, arm) == 1, "{}: has no arm '{}', but {}{}", opened.shown(),
        printable(arm, 60), fmt::join(opened.run->arms, ", "), did_you_mean(arm, opened.run->arms));
  CHECK(has_gain(arm), "{}: has no filter: arm {}; train one with --arm bft", opened.shown(), printable(arm, 60));
}

std::vector<std::string> finished_arms(const OpenedRun& opened, const std::vector<std::string>& asked) {
  for (const std::string& arm : asked) check_arm_with_gain(opened, arm);
  const std::vector<std::string> arms = asked.empty() ? arms_with_gain(opened) : asked;
  for (const std::string& arm : arms)
    CHECK(!finished_seeds(opened, arm).empty(), "{}: no seed of arm {} is finished", opened.shown(),
          printable(arm, 60));
  return arms;
}

std::vector<std::uint64_t> finished_seeds(const OpenedRun& opened, const std::string& arm) {
  const auto place = static_cast<std::size_t>(std::ranges::find(opened.run->arms, arm) - opened.run->arms.begin());
  std::vector<std::uint64_t> found;
  for (std::size_t seed = 0; seed < opened.run->seeds.size(); ++seed) {
    const bool asked = opened.only.empty() || std::ranges::count(opened.only, opened.run->seeds[seed]) > 0;
    if (asked && opened.run->result(place, seed)) found.push_back(opened.run->seeds[seed]);
  }
  return found;
}

void check_same_split(const OpenedRun& opened, const data::LeaveOneOut& split, const InteractionArguments& data) {
  CHECK(
      opened.run->split() == split.checksum(),
      "{}: is split otherwise than the data that {} was trained on; give the same file, with the same --split, --ties, "
      "--min-item-count and --duplicates",
      printable(data.path), opened.shown());
  check_same_times(opened, split, data);
}

void check_same_times(const OpenedRun& opened, const data::LeaveOneOut& split, const InteractionArguments& data) {
  const auto& stored_data = opened.run->request.at("data");
  CHECK(!stored_data.contains("times") || stored_data.at("times") == split.checksum_of_times(),
        "{}: has other times than the data that {} was trained on, and this model reads them; give the same file",
        printable(data.path), opened.shown());
}

SeedModel open_seed(const OpenedRun& opened, const std::string& arm, std::uint64_t seed, const data::LeaveOneOut& split,
                    const InteractionArguments& data) {
  const fs::path folder = opened.folder / arm / fmt::format("seed-{}", seed);
  recommend::RecommenderCheckpoint checkpoint = recommend::open_recommender(folder);
  recommend::check_catalogue(checkpoint, split.interactions(), printable(data.path));
  return {std::move(checkpoint.model), printable(folder.string())};
}

void tell_share(const std::string& where, double share) {
  if (share < 1)
    print_notice("gainlens: {}: its filter is in force at {:.0f}%: the best epoch lies in the warm-up\n", where,
                 100 * share);
}

}  // namespace gainlens::cli
