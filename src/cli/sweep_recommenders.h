#pragma once

#include "cli/application.h"
#include "cli/command_options.h"

#include <CLI/CLI.hpp>

#include <string>
#include <vector>

// gainlens sweep of trained recommenders.

namespace gainlens::cli {

struct RecommenderSweepArguments {
  std::string model;  ///< folder of a run of train recommend, or of one of its trainings
  InteractionArguments data;
  std::vector<std::string> arms;  ///< none: every arm with attention
  std::string out;
};

/// Adds the options that only a sweep of recommenders has.
void add_recommender_sweep_options(CLI::App& command, RecommenderSweepArguments& arguments);
/// @throws InvalidArgument  one of them was given
void refuse_recommender_sweep_options(const CLI::App& command, const RecommenderSweepArguments& arguments);

/// Whether the model of a sweep is a recommender, or a run of recommenders.
bool is_recommender_sweep(const std::string& model);

/// Sweeps the models, writes the run and prints what was found.
/// @throws InvalidArgument  an option of language models was given; no such arm; other data; --out holds another run
void sweep_recommenders(const CLI::App& command, const RecommenderSweepArguments& arguments,
                        const GlobalOptions& global);

}  // namespace gainlens::cli
