#include "cli/application.h"

#include "analyses/frequency_reading.h"
#include "cli/command_options.h"
#include "cli/filtered_runs.h"
#include "cli/given_run.h"
#include "core/check.h"
#include "core/console.h"
#include "core/json.h"
#include "core/progress.h"
#include "data/item_values.h"
#include "recommend/filtered_positions.h"
#include "recommend/untrained_positions.h"
#include "recommend/variants.h"
#include "reports/frequency/frequency_report.h"

#include <ATen/Parallel.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gainlens::cli {
namespace {

namespace fs = std::filesystem;

struct FrequencyArguments : FilterArguments {
  std::vector<std::string> placebos;  // "step-0", "FOLDER" or "FOLDER:ARM"
  analyses::FrequencyOptions options;
  std::string against;  // file
};

analyses::FilteredArm read_arm(const OpenedRun& opened, const std::string& arm, const std::vector<std::uint64_t>& seeds,
                               const data::LeaveOneOut& split, const InteractionArguments& data, Progress& progress) {
  analyses::FilteredArm found{arm, seeds, {}};
  for (const std::uint64_t seed : seeds) {
    const SeedModel opened_seed = open_seed(opened, arm, seed, split, data);
    found.models.push_back(
        recommend::filtered_positions(*opened_seed.model, split, data::HeldOut::test, opened_seed.where));
    tell_share(opened_seed.where, found.models.back().share);
    progress.advance(1, static_cast<double>(found.models.back().read.item.size()),
                     fmt::format("{} seed {}", arm, seed));
  }
  return found;
}

/// What stands beside an arm: the arm of a run, or the models of the arm itself at step 0.
struct Placebo {
  OpenedRun opened;  ///< none: step 0
  std::string arm;

  bool is_step_0() const { return opened.run == nullptr; }
};

/// The value of --placebo for the models of the run before their training.
constexpr std::string_view step_0 = "step-0";

/// A folder that exists may have a colon in its name.
std::pair<std::string, std::string> folder_and_arm(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || fs::exists(text)) return {text, ""};
  return {text.substr(0, colon), text.substr(colon + 1)};
}

OpenedRun open_placebo(const std::string& text, const OpenedRun& model, const data::LeaveOneOut& split,
                       const InteractionArguments& data) {
  OpenedRun opened = open_filtered_run(folder_and_arm(text).first, "--placebo: ");
  CHECK(opened.run->backbone() == model.run->backbone(), "--placebo: {} has the backbone {}, and the model {}",
        opened.shown(), printable(opened.run->backbone(), 60), printable(model.run->backbone(), 60));
  CHECK(opened.run->split() == split.checksum(), "--placebo: {} was trained on other data, or on another split of it",
        opened.shown());
  check_same_times(opened, split, data);
  return opened;
}

/// The arm that is named; else the one with the same name; else the only one with a gain.
std::string placebo_arm(const OpenedRun& opened, const std::string& wanted, const std::string& arm) {
  if (!wanted.empty()) {
    check_arm_with_gain(opened, wanted);
    return wanted;
  }
  const std::vector<std::string> found = arms_with_gain(opened);
  if (std::ranges::count(found, arm) > 0) return arm;
  CHECK(found.size() == 1, "--placebo: {} has the arms {}; name one: --placebo {}:{}", opened.shown(),
        fmt::join(found, ", "), opened.shown(), found.front());
  return found.front();
}

void check_seeds_of_placebo(const OpenedRun& opened, const std::string& arm, const std::vector<std::uint64_t>& seeds) {
  const std::vector<std::uint64_t> finished = finished_seeds(opened, arm);
  std::vector<std::uint64_t> missing;
  std::ranges::copy_if(seeds, std::back_inserter(missing),
                       [&](std::uint64_t seed) { return std::ranges::count(finished, seed) == 0; });
  CHECK(missing.empty(), "--placebo: {}, arm {}, lacks {} {}; train it with the seeds of the model", opened.shown(),
        printable(arm, 60), missing.size() == 1 ? "seed" : "seeds", fmt::join(missing, ", "));
}

/// Whether a value of --placebo names an arm of the run itself.
bool names_own_arm(const std::string& placebo, const OpenedRun& opened, const std::string& arm) {
  const auto [folder, folder_arm] = folder_and_arm(placebo);
  return placebo != step_0 && folder_arm == arm && fs::exists(folder) && fs::equivalent(folder, opened.folder);
}

/// The arms that are read: those that are asked for, or all with a gain but the placebos.
std::vector<std::string> arms_to_read(const FrequencyArguments& arguments, const OpenedRun& opened) {
  std::vector<std::string> arms = finished_arms(opened, arguments.arms);
  if (!arguments.arms.empty() || arms.size() == 1) return arms;
  std::erase_if(arms, [&](const std::string& arm) {
    return std::ranges::any_of(arguments.placebos,
                               [&](const std::string& placebo) { return names_own_arm(placebo, opened, arm); });
  });
  CHECK(!arms.empty(), "--placebo: names every arm of {}; one must be left to be compared", opened.shown());
  return arms;
}

/// The placebos of each arm.
std::vector<std::vector<Placebo>> placebos_of(const FrequencyArguments& arguments, const OpenedRun& opened,
                                              const std::vector<std::string>& arms, const data::LeaveOneOut& split) {
  std::vector<std::vector<Placebo>> found(arms.size());
  for (auto text = arguments.placebos.begin(); text != arguments.placebos.end(); ++text) {
    CHECK(std::find(arguments.placebos.begin(), text, *text) == text, "--placebo: '{}' is given twice",
          printable(*text));
    const OpenedRun placebo = *text == step_0 ? OpenedRun() : open_placebo(*text, opened, split, arguments.data);
    for (std::size_t i = 0; i < arms.size(); ++i) {
      if (placebo.run == nullptr) {
        found[i].push_back({placebo, arms[i]});
        continue;
      }
      const std::string other = placebo_arm(placebo, folder_and_arm(*text).second, arms[i]);
      CHECK(!fs::equivalent(placebo.folder, opened.folder) || other != arms[i], "--placebo: is arm {} of {} itself",
            printable(arms[i], 60), opened.shown());
      check_seeds_of_placebo(placebo, other, finished_seeds(opened, arms[i]));
      found[i].push_back({placebo, other});
    }
  }
  return found;
}

/// The models of an arm before their training.
analyses::FilteredArm read_step_0(const OpenedRun& opened, const std::string& arm,
                                  const std::vector<std::uint64_t>& seeds, const data::LeaveOneOut& split,
                                  Progress& progress) {
  const recommend::Settings settings =
      recommend::settings_of_request(opened.run->request, runfile::variant_of(arm), opened.shown());
  const recommend::ArmParts& parts = *recommend::find_arm(runfile::arm_of(arm));
  analyses::FilteredArm found{"step 0", seeds, {}};
  for (const std::uint64_t seed : seeds) {
    const std::string where = fmt::format("{}, {} seed {} at step 0", opened.shown(), printable(arm, 60), seed);
    found.models.push_back(
        recommend::untrained_positions(settings, parts.arm, seed, split, data::HeldOut::test, where));
    progress.advance(1, static_cast<double>(found.models.back().read.item.size()),
                     fmt::format("{} seed {} at step 0", arm, seed));
  }
  return found;
}

void read_frequencies(FrequencyArguments arguments, const GlobalOptions& global) {
  arguments.options.seed = global.seed;
  arguments.options.threads = static_cast<std::size_t>(std::max(at::get_num_threads(), 1));
  check(arguments.options);
  const OpenedRun opened = open_filtered_run(arguments);
  const std::vector<std::string> arms = arms_to_read(arguments, opened);
  const data::LeaveOneOut split(arguments.data.read());
  check_same_split(opened, split, arguments.data);
  const std::vector<std::vector<Placebo>> placebos = placebos_of(arguments, opened, arms, split);

  std::vector<double> counts(split.training_counts().begin() + 1, split.training_counts().end());
  if (!arguments.against.empty()) {
    data::ItemValues given = data::read_item_values(arguments.against, split.interactions());
    if (given.lines_without_item > 0)
      print_notice(
          "gainlens: {}: {} no item of the data, and {} not used\n", printable(arguments.against),
          given.lines_without_item == 1 ? "1 line names" : fmt::format("{} lines name", given.lines_without_item),
          given.lines_without_item == 1 ? "is" : "are");
    arguments.options.against = std::move(given.name);
    counts = std::move(given.values);
  }
  double models = 0;
  for (std::size_t i = 0; i < arms.size(); ++i)
    models += static_cast<double>(finished_seeds(opened, arms[i]).size() * (1 + placebos[i].size()));
  Progress progress("k-by-frequency", models, "positions", global.quiet);
  std::vector<analyses::FrequencyReading> readings;
  for (std::size_t i = 0; i < arms.size(); ++i) {
    const std::vector<std::uint64_t> seeds = finished_seeds(opened, arms[i]);
    const analyses::FilteredArm arm = read_arm(opened, arms[i], seeds, split, arguments.data, progress);
    std::vector<analyses::FilteredArm> beside;
    for (const Placebo& placebo : placebos[i]) {
      if (placebo.is_step_0()) {
        beside.push_back(read_step_0(opened, arms[i], seeds, split, progress));
        continue;
      }
      beside.push_back(read_arm(placebo.opened, placebo.arm, seeds, split, arguments.data, progress));
      const bool same_run = fs::equivalent(placebo.opened.folder, opened.folder);
      beside.back().name = same_run ? placebo.arm : fmt::format("{}, arm {}", placebo.opened.shown(), placebo.arm);
    }
    readings.push_back(analyses::frequency_reading(arm, beside, counts, arguments.options));
  }
  progress.finish();
  if (!arguments.out.empty())
    tell_written(reports::write_frequency_report(readings, arguments.out), arguments.out, "k-by-frequency");
  print_arms(readings, global.json, reports::print_frequency);
}

}  // namespace

void add_k_by_frequency(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* command = add_subcommand(
      app, subcommand_named("k-by-frequency"), "gainlens k-by-frequency RUN --data ratings.dat",
      "The models of a run that train recommend made read the test inputs. K and the prior precision lambda of each\n"
      "layer, means over the dimensions, are averaged over the positions of each item, and correlated with the\n"
      "item's training count. docs/analyses/k-by-frequency.md says what this can show and what it cannot.");
  auto arguments = std::make_shared<FrequencyArguments>();
  add_filter_options(*command, *arguments);
  command
      ->add_option("--placebo", arguments->placebos,
                   "Models that cannot have learned a relation with frequency; prints the difference of the\n"
                   "correlations. step-0: the models of the run before their training. Or FOLDER or FOLDER:ARM: a run\n"
                   "of the same data with the same seeds, for example one with --permute-popularity true. May be\n"
                   "given several times")
      ->allow_extra_args(false);
  command
      ->add_option(
          "--groups", arguments->options.groups,
          "Number of groups of users, and of items, 20 to 10000, of which each is left out once for the intervals")
      ->capture_default_str();
  command
      ->add_option("--bins", arguments->options.bins,
                   "Number of groups of items, from rare to frequent, of --out and --json")
      ->capture_default_str();
  command->add_option("--against", arguments->against,
                      "CSV file with the columns item and NAME: this number of every item in the place of its training "
                      "count");
  add_filter_page(*command, *arguments);
  set_action(*command, action, [arguments, &global] { read_frequencies(*arguments, global); });
}

}  // namespace gainlens::cli
