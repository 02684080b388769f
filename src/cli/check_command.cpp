#include "cli/application.h"

#include "cli/given_run.h"
#include "cli/run_kinds.h"
#include "core/check.h"
#include "core/console.h"
#include "core/counted.h"
#include "core/json.h"
#include "core/json_words.h"
#include "experiment/job.h"
#include "reports/words/checks_table.h"

#include <fmt/ranges.h>

#include <cstddef>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gainlens::cli {
namespace {

namespace fs = std::filesystem;

using Results = std::vector<analyses::CheckResult>;

/// The training of a run that a path names. Nothing: it is none.
std::optional<GivenTraining> given_training(const fs::path& path) {
  const fs::path folder = fs::weakly_canonical(path);
  const auto seed = experiment::seed_of_folder(folder.filename().string());
  if (!seed) return std::nullopt;
  const auto run = run_of_training(folder);
  if (!run) return std::nullopt;
  return GivenTraining{*run, folder, fs::relative(folder.parent_path(), *run).generic_string(), *seed};
}

Results checks_of(const fs::path& path) {
  CHECK(fs::exists(path), "{}: no such file or folder", printable(path.string()));
  if (const auto training = given_training(path)) {
    if (auto* const check = commands_of(training->run).check_training) return check(*training);
  }
  auto* const check = commands_of(path).check;
  return (check != nullptr ? check : run_kinds().front()->check)(path);
}

void check_one(const std::string& path, const GlobalOptions& global) {
  const Results results = checks_of(path);
  print_result("{}", global.json ? json_text(analyses::to_json(results), 2) + "\n" : reports::print_checks(results));
  flush_results();  // a list that is lost is the worse news
  if (const std::size_t found = analyses::count_findings(results); found > 0)
    throw_run_failed("{}: {} of {} found something", printable(path), found, counted(results.size(), "check"));
}

/// What an exception tells of a run that is no good; nothing: it tells of something else.
std::optional<std::string> why_unreadable(const std::exception& error) {
  if (dynamic_cast<const InvalidArgument*>(&error)) return error.what();
  if (const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&error))
    return fmt::format("{}: {}", printable(file->path1().string()), file->code().message());
  if (const auto* json = dynamic_cast<const Json::exception*>(&error))
    return "a file of JSON is damaged or of another version: " + json_error_in_words(*json);
  return std::nullopt;
}

/// Checks every run, also behind one that cannot be read.
void check_several(const std::vector<std::string>& paths, const GlobalOptions& global) {
  OrderedJson json = {{"runs", OrderedJson::array()}};
  std::vector<std::string> unreadable, found;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    const std::string shown = printable(paths[i]);
    OrderedJson run = {{"run", paths[i]}};
    std::string text;
    try {
      const Results results = checks_of(paths[i]);
      run["checks"] = analyses::to_json(results).at("checks");
      text = reports::print_checks(results);
      if (analyses::count_findings(results) > 0) found.push_back(shown);
    } catch (const std::exception& error) {
      const std::optional<std::string> reason = why_unreadable(error);
      if (!reason) throw;
      run["unreadable"] = *reason;
      text = fmt::format("cannot be read: {}\n", *reason);
      unreadable.push_back(shown);
    }
    json["runs"].push_back(std::move(run));
    if (!global.json) print_result("{}{}\n{}", i > 0 ? "\n" : "", shown, text);
  }
  if (global.json) print_result("{}\n", json_text(json, 2));
  flush_results();
  const std::string among = fmt::format("of {}", counted(paths.size(), "run"));
  CHECK(unreadable.empty(), "check: {} {} cannot be read: {}", unreadable.size(), among, fmt::join(unreadable, ", "));
  if (!found.empty())
    throw_run_failed("check: something was found in {} {}: {}", found.size(), among, fmt::join(found, ", "));
}

}  // namespace

void note_files(analyses::CheckedTrainings& checked,
                const std::function<std::string(std::vector<runfile::FileFault>& faults)>& proof) {
  try {
    std::vector<runfile::FileFault> faults;
    checked.unproven = proof(faults);
    checked.changed = runfile::faults_in_words(faults);
  } catch (const std::exception& error) {
    const std::optional<std::string> reason = why_unreadable(error);
    if (!reason) throw;
    checked.changed = *reason;
  }
}

void add_check(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* command = add_subcommand(
      app, subcommand_named("check"), "gainlens check RUN",
      "One line for each check of a fixed list: satisfactory, or what is wrong, how much, and what to do. Nothing is\n"
      "changed. The report shows the same list. docs/analyses/check.md explains each check.\n"
      "Exit status: 0 all is satisfactory; 1 something was found; 2 the run cannot be read. Of several runs the\n"
      "largest one.");
  auto paths = std::make_shared<std::vector<std::string>>();
  command
      ->add_option("runs", *paths,
                   "Run folders or run.h5 of sweep, train recommend, train finetune, or train language-model with "
                   "several arms or seeds; folders ARM/seed-N or ARM/VARIANT/seed-N of one of their trainings; the "
                   "folder of one train language-model; run folders of intervene, inactive-heads or gate-arms. Several "
                   "are checked one after the other")
      ->required();
  set_action(*command, action, [paths, &global] {
    paths->size() == 1 ? check_one(paths->front(), global) : check_several(*paths, global);
  });
}

}  // namespace gainlens::cli
