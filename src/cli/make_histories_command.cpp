#include "cli/application.h"

#include "analyses/statistics.h"
#include "cli/command_options.h"
#include "cli/given_run.h"
#include "core/atomic_file.h"
#include "core/check.h"
#include "core/console.h"
#include "core/counted.h"
#include "core/json.h"
#include "core/ranking_metrics.h"
#include "data/changed_histories.h"
#include "data/latent_walk.h"
#include "data/leave_one_out.h"

#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace gainlens::cli {
namespace {

struct HistoriesArguments {
  InteractionArguments data;
  std::optional<double> density;
  std::vector<std::string> noise_texts;
  std::vector<double> noise;  // a share with --data, standard deviations with --synthetic
  bool synthetic = false;
  data::WalkOptions walk;
  std::string items;  // file with the noise of every item
  std::string out;
};

/// The options that belong to one source alone, for messages.
constexpr const char* data_options[] = {"--density"};  // and interaction_policy_options
constexpr const char* walk_options[] = {"--users",      "--items", "--shortest",  "--longest",
                                        "--dimensions", "--drift", "--items-file"};

/// Refuses names of files before anything is computed.
void check_files(const HistoriesArguments& arguments) {
  check_is_new_file("--out", arguments.out, text_file);
  if (arguments.items.empty()) return;
  check_is_new_file("--items-file", arguments.items, csv_file);
  CHECK(std::filesystem::weakly_canonical(arguments.items) != std::filesystem::weakly_canonical(arguments.out),
        "--items-file: {} is the file of --out; choose another name", printable(arguments.items));
}

/// Refuses an option that was given and would change nothing.
void check_source(const CLI::App& command, const HistoriesArguments& arguments) {
  const bool has_data = command.count("--data") > 0;
  CHECK(has_data != arguments.synthetic,
        "make-histories: give {}: --data F changes the histories of a data set, --synthetic makes new ones",
        has_data ? "one of --data and --synthetic" : "--data or --synthetic");
  const auto refuse = [&](std::span<const char* const> options, const char* source) {
    for (const char* option : options)
      CHECK(command.count(option) == 0, "{}: is an option of {}; leave it out", option, source);
  };
  if (arguments.synthetic) {
    refuse(data_options, "--data");
    refuse_interaction_policy(command, "is an option of --data");
    return;
  }
  refuse(walk_options, "--synthetic");
  CHECK(arguments.density.has_value() != !arguments.noise.empty(),
        "make-histories: give {}; for both, give the file that one of them made to a second call",
        arguments.density ? "one of --density and --noise" : "--density or --noise");
  CHECK(arguments.noise.size() <= 1, "--noise: {} numbers; with --data it is one share", arguments.noise.size());
}

void change_histories(const HistoriesArguments& arguments, const GlobalOptions& global) {
  CHECK(!arguments.data.policy.options().split.in_time(),
        "--split: {}; the histories that are written have no times, leave it out",
        printable(arguments.data.policy.split));
  const data::LeaveOneOut split(arguments.data.read());
  const bool thins = arguments.density.has_value();
  const data::ChangedHistories made = thins ? data::thinned(split, *arguments.density, global.seed)
                                            : data::with_noise(split, arguments.noise.front(), global.seed);
  write_file_atomically(arguments.out, data::sequence_lines(made.sequences));
  arguments.data.tell_left_out(split.interactions());
  const double share = static_cast<double>(made.changed) / static_cast<double>(made.training);
  if (global.json) {
    print_result("{}\n", json_text({{"file", arguments.out},
                                    {"users", split.users()},
                                    {"items", split.items() - made.missing_items},
                                    {"training_items", made.training},
                                    {thins ? "kept" : "replaced", made.changed},
                                    {"share", share},
                                    {"users_with_one_item_for_none", made.floored},
                                    {"lost_users", 0},
                                    {"lost_items", made.missing_items}}));
    return;
  }
  print_result("{}: {} of {} training items {} ({:.1f}%), of {}; {} lost\n", printable(arguments.out), made.changed,
               made.training, thins ? "kept" : "replaced", 100 * share, counted(split.users(), "user"),
               split.users() == 1 ? "it is not" : "none of these is");
  if (made.floored > 0)
    print_result("{} would have kept none, and keep one: without it the user and its test would be dropped\n",
                 counted(made.floored, "user"));
  if (made.missing_items > 0)
    print_result("{} of the {} items {} in no history any more, and no candidate of a ranking\n", made.missing_items,
                 split.items(), made.missing_items == 1 ? "is" : "are");
}

/// Mean of a metric over users, with its standard error.
std::pair<double, double> mean_and_error(const RankingMetric& metric, const std::vector<double>& ranks) {
  std::vector<double> values;
  values.reserve(ranks.size());
  for (const double rank : ranks) values.push_back(metric.value_at(rank));
  return {mean_of(metric, ranks), values.size() > 1 ? analyses::mean_estimate(values).error : std::nan("")};
}

constexpr const char* what_ranks[] = {"exact: the Kalman filter that knows the noise of every item",
                                      "alike: the Kalman filter that takes all items for equally noisy",
                                      "constant: one gain for all clicks, that of the least squared error"};

void make_walk(const HistoriesArguments& arguments, const GlobalOptions& global) {
  data::WalkOptions options = arguments.walk;
  options.seed = global.seed;
  CHECK(!arguments.noise.empty(), "--noise: is missing; give the standard deviations of the items, such as 0.3,1.5");
  options.noise = arguments.noise;
  const data::LatentWalk walk = data::latent_walk(options);
  const std::vector<data::WalkRanking> rankings = data::rank_walk(walk, options);
  std::size_t interactions = 0;
  for (const auto& sequence : walk.sequences) interactions += sequence.size();
  write_file_atomically(arguments.out, data::sequence_lines(walk.sequences));
  if (!arguments.items.empty()) write_file_atomically(arguments.items, data::item_table(walk));
  const std::vector<RankingMetric> metrics = {parse_ranking_metric("hr@10"), parse_ranking_metric("ndcg@10"),
                                              parse_ranking_metric("mrr")};
  if (global.json) {
    OrderedJson json = {{"file", arguments.out},        {"users", options.users}, {"items", options.items},
                        {"interactions", interactions}, {"noise", options.noise}, {"filters", OrderedJson::object()}};
    for (const data::WalkRanking& ranking : rankings) {
      OrderedJson& filter = json["filters"][std::string(name_of(ranking.filter))] = {{"gain", ranking.gain}};
      for (const RankingMetric& metric : metrics) {
        const auto [mean, error] = mean_and_error(metric, ranking.ranks);
        filter[metric.name()] = {{"mean", mean}, {"error", error}};
      }
    }
    print_result("{}\n", json_text(json));
    return;
  }
  print_result("{}: {}, {}, {} interactions\n\n", printable(arguments.out), counted(options.users, "user"),
               counted(options.items, "item"), interactions);
  print_result(
      "What filters reach on the test items that know how the histories were made, with standard errors over "
      "users:\n{:<66} {:>6}  {:<15}  {:<15}  {}\n",
      "filter", "gain", "hr@10", "ndcg@10", "mrr");
  for (std::size_t i = 0; i < rankings.size(); ++i) {
    std::string line = fmt::format("{:<66} {:>6.3f}", what_ranks[i], rankings[i].gain);
    for (const RankingMetric& metric : metrics) {
      const auto [mean, error] = mean_and_error(metric, rankings[i].ranks);
      line += fmt::format("  {:.4f} ({:.4f})", mean, error);
    }
    print_result("{}\n", line);
  }
}

void add_walk_options(CLI::App& command, HistoriesArguments& arguments) {
  data::WalkOptions& walk = arguments.walk;
  const char* const group = "Synthetic histories";
  command.add_option("--users", walk.users, "Number of users")->capture_default_str()->group(group);
  command.add_option("--items", walk.items, "Number of items; item i has the noise level (i - 1) mod their number")
      ->capture_default_str()
      ->group(group);
  command.add_option("--shortest", walk.shortest, "Fewest interactions of a user, at least 3")
      ->capture_default_str()
      ->group(group);
  command.add_option("--longest", walk.longest, "Most interactions of a user")->capture_default_str()->group(group);
  command.add_option("--dimensions", walk.dimensions, "Dimensions of the state, each of variance 1")
      ->capture_default_str()
      ->group(group);
  command.add_option("--drift", walk.drift, "Standard deviation of a step of the state, from 0 to below 1")
      ->capture_default_str()
      ->group(group);
  command.add_option("--items-file", arguments.items, "CSV file to write: noise and place of every item")->group(group);
}

}  // namespace

void add_make_histories(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* command = add_subcommand(
      app, subcommand_named("make-histories"), "gainlens make-histories --synthetic --noise 0.3,1.5 --out walk.txt",
      "The file has the format `sequences`, which train recommend --data reads. Validation and test items stay, so\n"
      "that models of all shares are asked the same. Users are numbered in the order of the data.\n"
      "Of synthetic histories it prints what filters reach that know the truth: the exact filter is what a model can\n"
      "win at all. docs/analyses/when-does-it-help.md says how they are made, and what models reach on them.");
  auto arguments = std::make_shared<HistoriesArguments>();
  add_interaction_options(*command, arguments->data);
  command->get_option("--data")->required(false);
  command->add_option("--density", arguments->density,
                      "Share of the training items of --data that is kept, above 0; each user keeps one at least");
  add_name_list(*command, "--noise", arguments->noise_texts,
                "With --data the share of the training items that are replaced by random items, 0 to 1; with\n"
                "--synthetic the standard deviations of the items' noise, 0.001 to 100, separated by commas");
  command->add_flag("--synthetic", arguments->synthetic,
                    "New histories: a state that moves slowly, measured by items of known noise");
  add_walk_options(*command, *arguments);
  command->add_option("--out", arguments->out, "File to write")->required();
  set_action(*command, action, [arguments, command, &global] {
    arguments->noise = numbers_of(arguments->noise_texts, "--noise");
    check_source(*command, *arguments);
    check_files(*arguments);
    arguments->synthetic ? make_walk(*arguments, global) : change_histories(*arguments, global);
  });
}

}  // namespace gainlens::cli
