#pragma once

#include "cli/command_options.h"
#include "core/console.h"
#include "core/json.h"
#include "data/leave_one_out.h"
#include "recommend/recommender_checkpoint.h"
#include "runfile/recommend_run.h"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

// Recommender runs whose models are read again on their data, by commands about the filter.

namespace gainlens::cli {

/// A run folder with the checkpoints of its trainings.
struct OpenedRun {
  std::filesystem::path folder;
  std::shared_ptr<const runfile::RecommendRun> run;
  std::vector<std::uint64_t> only;  ///< seeds that were asked for; none: every one

  std::string shown() const;  ///< the folder, for messages
};

/// What commands about the filter are given.
struct FilterArguments {
  std::string run;
  InteractionArguments data;
  std::vector<std::string> arms;   ///< none: every arm with a gain
  std::vector<std::string> seeds;  ///< none: every one
  std::string out;
};
/// Adds RUN, --data, --arm and --only-seeds.
void add_filter_options(CLI::App& command, FilterArguments& arguments);
/// Adds --out.
void add_filter_page(CLI::App& command, FilterArguments& arguments);

/// @param what  where the folder was given, for messages
/// @throws InvalidArgument  no such folder; a file; as given_recommend_run()
OpenedRun open_filtered_run(const std::filesystem::path& path, const std::string& what = "");

/// Opens the run with the seeds that were asked for.
/// @throws InvalidArgument  --out holds a run; as open_filtered_run() and choose_seeds()
OpenedRun open_filtered_run(const FilterArguments& arguments);
/// The arms whose gain follows from precisions, with their variants.
/// @throws InvalidArgument  there is none
std::vector<std::string> arms_with_gain(const OpenedRun& opened);
/// @throws InvalidArgument  the run has no such arm (nearest match named), or the arm has no such gain
void check_arm_with_gain(const OpenedRun& opened, const std::string& arm);
/// @param asked  what the user named; none: every arm with a gain
/// @throws InvalidArgument  as above; no seed of an arm is finished
std::vector<std::string> finished_arms(const OpenedRun& opened, const std::vector<std::string>& asked);
/// The seeds of an arm that have finished, among those that were asked for.
std::vector<std::uint64_t> finished_seeds(const OpenedRun& opened, const std::string& arm);
/// @throws InvalidArgument  the run has models that read times, and the data have others
void check_same_times(const OpenedRun& opened, const data::LeaveOneOut& split, const InteractionArguments& data);
/// @throws InvalidArgument  the split of the data is not that of the run; as check_same_times()
void check_same_split(const OpenedRun& opened, const data::LeaveOneOut& split, const InteractionArguments& data);

/// A model of the run with its name for messages.
struct SeedModel {
  std::unique_ptr<recommend::Backbone> model;
  std::string where;
};
/// @throws InvalidArgument  as recommend::open_recommender(); another catalogue
SeedModel open_seed(const OpenedRun& opened, const std::string& arm, std::uint64_t seed, const data::LeaveOneOut& split,
                    const InteractionArguments& data);
/// Prints what was found of each arm: as text with an empty line between them, or as JSON under "arms".
/// @param print  makes the text of a reading; to_json() makes the JSON
template <typename Reading, typename Print>
void print_arms(const std::vector<Reading>& readings, bool json, const Print& print) {
  if (!json) {
    for (std::size_t i = 0; i < readings.size(); ++i) print_result("{}{}", i > 0 ? "\n" : "", print(readings[i]));
    return;
  }
  OrderedJson all = {{"arms", OrderedJson::array()}};
  for (const Reading& reading : readings) all["arms"].push_back(to_json(reading));
  print_result("{}\n", json_text(all, 2));
}

/// Says so if the filter of a model is only partly in force.
void tell_share(const std::string& where, double share);

}  // namespace gainlens::cli
