#pragma once

#include "cli/application_parts.h"
#include "cli/global_options.h"
#include "cli/subcommand_list.h"

#include <CLI/CLI.hpp>

namespace gainlens::cli {

/// Of each subcommand, a function that adds it. Parsing the subcommand sets `action`.
#define GAINLENS_DECLARED(identifier, ...) \
  void add_##identifier(CLI::App& app, const GlobalOptions& global, Action& action);
GAINLENS_SUBCOMMANDS(GAINLENS_DECLARED)
#undef GAINLENS_DECLARED

/// `evaluate recommend`, to the subcommand `evaluate`.
void add_evaluate_recommend(CLI::App& evaluate, const GlobalOptions& global, Action& action);

/// `train finetune`, to the subcommand `train`.
void add_train_finetune(CLI::App& train, const GlobalOptions& global, Action& action);

/// `train recommend`, to the subcommand `train`.
void add_train_recommend(CLI::App& train, const GlobalOptions& global, Action& action);

}  // namespace gainlens::cli
