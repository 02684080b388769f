#pragma once

#include "cli/application_parts.h"
#include "cli/global_options.h"

#include <CLI/CLI.hpp>

namespace gainlens::cli {

/// Each function adds one subcommand. Parsing the subcommand sets `action`.
void add_sweep(CLI::App& app, const GlobalOptions& global, Action& action);
void add_report(CLI::App& app, const GlobalOptions& global, Action& action);
void add_sinks(CLI::App& app, const GlobalOptions& global, Action& action);
void add_sink_vs_k(CLI::App& app, const GlobalOptions& global, Action& action);
void add_check(CLI::App& app, const GlobalOptions& global, Action& action);
void add_audit(CLI::App& app, const GlobalOptions& global, Action& action);
void add_capture(CLI::App& app, const GlobalOptions& global, Action& action);
void add_look(CLI::App& app, const GlobalOptions& global, Action& action);
void add_generate(CLI::App& app, const GlobalOptions& global, Action& action);
void add_intervene(CLI::App& app, const GlobalOptions& global, Action& action);
void add_gate_arms(CLI::App& app, const GlobalOptions& global, Action& action);
void add_inactive_heads(CLI::App& app, const GlobalOptions& global, Action& action);
void add_inspect(CLI::App& app, const GlobalOptions& global, Action& action);
void add_hooks(CLI::App& app, const GlobalOptions& global, Action& action);
void add_train(CLI::App& app, const GlobalOptions& global, Action& action);
void add_compare(CLI::App& app, const GlobalOptions& global, Action& action);
void add_k_by_frequency(CLI::App& app, const GlobalOptions& global, Action& action);
void add_gain_by(CLI::App& app, const GlobalOptions& global, Action& action);
void add_error_by_precision(CLI::App& app, const GlobalOptions& global, Action& action);
void add_make_histories(CLI::App& app, const GlobalOptions& global, Action& action);
void add_sensitivity(CLI::App& app, const GlobalOptions& global, Action& action);
void add_estimators(CLI::App& app, const GlobalOptions& global, Action& action);
void add_evaluate(CLI::App& app, const GlobalOptions& global, Action& action);

/// `evaluate recommend`, to the subcommand `evaluate`.
void add_evaluate_recommend(CLI::App& evaluate, const GlobalOptions& global, Action& action);

/// `train finetune`, to the subcommand `train`.
void add_train_finetune(CLI::App& train, const GlobalOptions& global, Action& action);

/// `train recommend`, to the subcommand `train`.
void add_train_recommend(CLI::App& train, const GlobalOptions& global, Action& action);

}  // namespace gainlens::cli
