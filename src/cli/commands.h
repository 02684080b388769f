#pragma once

#include "cli/global_options.h"

#include <CLI/CLI.hpp>

#include <functional>

namespace gainlens::cli {

/// What a subcommand does once the whole command line has been read.
using Action = std::function<void()>;

/// Each function adds one subcommand. Parsing the subcommand sets `action`.
void add_sweep(CLI::App& app, const GlobalOptions& global, Action& action);
void add_report(CLI::App& app, const GlobalOptions& global, Action& action);
void add_sink_vs_k(CLI::App& app, const GlobalOptions& global, Action& action);
void add_audit(CLI::App& app, const GlobalOptions& global, Action& action);
void add_capture(CLI::App& app, const GlobalOptions& global, Action& action);
void add_inspect(CLI::App& app, const GlobalOptions& global, Action& action);
void add_hooks(CLI::App& app, const GlobalOptions& global, Action& action);
void add_train(CLI::App& app, const GlobalOptions& global, Action& action);
void add_compare(CLI::App& app, const GlobalOptions& global, Action& action);
void add_estimators(CLI::App& app, const GlobalOptions& global, Action& action);
void add_evaluate(CLI::App& app, const GlobalOptions& global, Action& action);

/// `evaluate recommend`, to the subcommand `evaluate`.
void add_evaluate_recommend(CLI::App& evaluate, const GlobalOptions& global, Action& action);

/// `train recommend`, to the subcommand `train`.
void add_train_recommend(CLI::App& train, const GlobalOptions& global, Action& action);

/// Adds a subcommand. Its help ends with the details (units, files, how it resumes), an example, and the exit status.
/// @param app      the application, or the subcommand that this one belongs to
/// @param example  a command that works as printed
/// @param details  lines that the caller has wrapped; may be empty
CLI::App* add_subcommand(CLI::App& app, const std::string& name, const std::string& description,
                         const std::string& example, const std::string& details = "");

}  // namespace gainlens::cli
