#include "cli/application.h"

#include "analyses/error_order.h"
#include "cli/command_options.h"
#include "cli/filtered_runs.h"
#include "cli/given_run.h"
#include "core/console.h"
#include "core/json.h"
#include "core/progress.h"
#include "recommend/user_states.h"
#include "reports/error_order/error_order_report.h"

#include <ATen/Parallel.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace gainlens::cli {
namespace {

struct ErrorOrderArguments : FilterArguments {
  bool keep_seen = false;
  analyses::ErrorOrderOptions options;
};

/// What the data alone say of the users.
analyses::RankedUsers users_of(const data::LeaveOneOut& split) {
  const std::vector<std::int64_t>& counts = split.training_counts();
  analyses::RankedUsers users;
  for (std::int64_t user = 0; user < split.users(); ++user) {
    const data::History history = split.history(user, data::HeldOut::test);
    double popularity = 0;
    for (const data::ItemId item : history.items)
      popularity += std::log1p(static_cast<double>(counts[static_cast<std::size_t>(item)]));
    const auto length = static_cast<double>(history.items.size());
    users.history_length.push_back(length);
    users.history_popularity.push_back(popularity / length);
    users.last_popularity.push_back(static_cast<double>(counts[static_cast<std::size_t>(history.items.back())]));
    users.target.push_back(split.target(user, data::HeldOut::test));
  }
  return users;
}

analyses::RankedUsers read_arm(const OpenedRun& opened, const std::string& arm, const data::LeaveOneOut& split,
                               const ErrorOrderArguments& arguments, Progress& progress) {
  analyses::RankedUsers users = users_of(split);
  users.arm = arm;
  users.seeds = finished_seeds(opened, arm);
  for (const std::uint64_t seed : users.seeds) {
    const SeedModel opened_model = open_seed(opened, arm, seed, split, arguments.data);
    recommend::RankingOptions options;
    options.keep_seen = arguments.keep_seen;
    recommend::UserStates states =
        recommend::user_states(*opened_model.model, split, data::HeldOut::test, opened_model.where, options);
    tell_share(opened_model.where, states.share);
    users.most_precision = states.most_precision;
    users.rank.push_back(std::move(states.rank));
    users.precision.push_back(std::move(states.precision));
    users.confidence.push_back(std::move(states.confidence));
    progress.advance(1, static_cast<double>(split.users()), fmt::format("{} seed {}", arm, seed));
  }
  return users;
}

void order_errors(ErrorOrderArguments arguments, const GlobalOptions& global) {
  arguments.options.seed = global.seed;
  arguments.options.threads = static_cast<std::size_t>(std::max(at::get_num_threads(), 1));
  check(arguments.options);
  const OpenedRun opened = open_filtered_run(arguments);
  const std::vector<std::string> arms = finished_arms(opened, arguments.arms);
  const data::LeaveOneOut split(arguments.data.read());
  check_same_split(opened, split, arguments.data);
  double models = 0;
  for (const std::string& arm : arms) models += static_cast<double>(finished_seeds(opened, arm).size());
  Progress progress("error-by-precision", models, "users", global.quiet);
  std::vector<analyses::ErrorOrderReading> readings;
  readings.reserve(arms.size());
  for (const std::string& arm : arms)
    readings.push_back(analyses::error_order(read_arm(opened, arm, split, arguments, progress), arguments.options));
  progress.finish();
  if (!arguments.out.empty())
    tell_written(reports::write_error_order_report(readings, arguments.out), arguments.out, "error-by-precision");
  print_arms(readings, global.json, reports::print_error_order);
}

}  // namespace

void add_error_by_precision(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* command = add_subcommand(
      app, subcommand_named("error-by-precision"), "gainlens error-by-precision RUN --data ratings.dat",
      "The models of a run that train recommend made rank the test item of each user. The precision of the state from\n"
      "which they rank is correlated with the rank, over users, beside rivals that need no filter: the length of the\n"
      "history, the popularity of its items and of the last one, and the probability of the best item.\n"
      "docs/analyses/error-by-precision.md says what this can show and what it cannot.");
  auto arguments = std::make_shared<ErrorOrderArguments>();
  add_filter_options(*command, *arguments);
  command->add_flag("--keep-seen", arguments->keep_seen, "Items that the user has seen stay candidates");
  command
      ->add_option("--groups", arguments->options.groups,
                   "Number of groups of users, 20 to 10000, of which each is left out once for the intervals")
      ->capture_default_str();
  command
      ->add_option("--bins", arguments->options.bins, "Number of groups of users by each quantity, of --out and --json")
      ->capture_default_str();
  add_filter_page(*command, *arguments);
  set_action(*command, action, [arguments, &global] { order_errors(*arguments, global); });
}

}  // namespace gainlens::cli
