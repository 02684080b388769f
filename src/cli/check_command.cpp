#include "cli/commands.h"

#include "cli/check_parts.h"
#include "cli/run_kinds.h"
#include "core/check.h"
#include "core/console.h"
#include "core/counted.h"
#include "core/json.h"
#include "reports/terminal/checks_terminal.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace gainlens::cli {
namespace {

namespace fs = std::filesystem;

using Results = std::vector<analyses::CheckResult>;

Results checks_of(const fs::path& path) {
  CHECK(fs::exists(path), "{}: no such file or folder", printable(path.string()));
  if (auto alone = check_training_alone(path)) return std::move(*alone);
  auto* const check = commands_of(path).check;
  return (check != nullptr ? check : run_kinds().front()->check)(path);
}

void check_and_print(const std::string& path, const GlobalOptions& global) {
  const Results results = checks_of(path);
  if (global.json) {
    print_result("{}\n", json_text(analyses::to_json(results), 2));
  } else {
    print_result("{}", reports::print_checks(results));
  }
  flush_results();  // a list that is lost is the worse news
  if (const std::size_t found = analyses::count_findings(results); found > 0)
    throw_run_failed("{}: {} of {} found something", printable(path), found, counted(results.size(), "check"));
}

}  // namespace

void note_files(analyses::CheckedTrainings& checked, const std::function<std::string()>& proof) {
  try {
    checked.unproven = proof();
  } catch (const InvalidArgument& error) {
    checked.changed = error.what();
  }
}

void add_check(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* command = add_subcommand(
      app, subcommand_named("check"), "gainlens check RUN",
      "One line for each check of a fixed list: satisfactory, or what is wrong, how much, and what to do. Nothing is\n"
      "changed. The report shows the same list. docs/analyses/check.md explains each check.\n"
      "Exit status: 0 all is satisfactory; 1 something was found; 2 the run cannot be read.");
  auto path = std::make_shared<std::string>();
  command
      ->add_option(
          "run", *path,
          "Run folder or run.h5 of sweep, train recommend or train finetune, folder ARM/seed-N of one training "
          "of recommenders, folder of train language-model, or run folder of intervene, inactive-heads or "
          "gate-arms")
      ->required();
  command->callback([path, &global, &action] { action = [path, &global] { check_and_print(*path, global); }; });
}

}  // namespace gainlens::cli
