#include "cli/application.h"

#include "analyses/published_results.h"
#include "analyses/recommender_results.h"
#include "cli/command_options.h"
#include "cli/given_run.h"
#include "core/atomic_file.h"
#include "core/check.h"
#include "core/console.h"
#include "core/counted.h"
#include "core/json.h"
#include "core/list_metrics.h"
#include "core/ranking_metrics.h"
#include "data/item_ranks.h"
#include "data/leave_one_out.h"
#include "recommend/finished_seeds.h"
#include "recommend/full_ranking.h"
#include "recommend/recommender_checkpoint.h"
#include "reports/page/csv_table.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::cli {
namespace {

std::string figure(const analyses::PublishedResult::Figure& figure) {
  return figure.deviation ? fmt::format("{:.4f} ({:.4f})", figure.mean, *figure.deviation)
                          : fmt::format("{:.4f}", figure.mean);
}

/// Published results for the terminal: a heading, and a line for each model. Empty without results.
std::string published_lines(const std::vector<analyses::PublishedResult>& results) {
  if (results.empty()) return {};
  std::size_t widest = 0;
  for (const analyses::PublishedResult& result : results) widest = std::max(widest, result.model.size());
  std::string lines =
      fmt::format("published for these data ({}), with this protocol: hr@10, ndcg@10\n", results.front().data_set);
  for (const analyses::PublishedResult& result : results) {
    lines +=
        fmt::format("  {:<{}}  {:<15}  {:<15}  {}{}{}\n", result.model, widest, figure(result.hit), figure(result.gain),
                    result.source, result.seeds ? fmt::format(", {} seeds", *result.seeds) : "",
                    result.split.empty() ? "; order of ties not known" : "");
  }
  return lines;
}

struct EvaluateRecommendArguments {
  std::string checkpoint;
  std::string layout = "gainlens";
  std::optional<std::int64_t> heads;
  std::string items;  // table of the ids that another program gave the items
  InteractionArguments data;
  bool keep_seen = false;
  bool validation = false;
  bool other_split = false;
  std::optional<std::int64_t> top_k;
  std::string out;
  std::string ranks;      // file of ranks made elsewhere, in the place of a checkpoint
  std::string ranks_out;  // file to write
};

OrderedJson metrics_of(const std::vector<float>& ranks) {
  OrderedJson found;
  for (const RankingMetric& metric : ranking_metrics()) found[metric.name()] = mean_of(metric, ranks);
  found["users"] = ranks.size();
  return found;
}

constexpr std::string_view name_of(recommend::SplitMatch match) {
  constexpr std::string_view names[] = {"same", "other", "other times", "unknown"};
  return names[static_cast<std::size_t>(match)];
}

/// Refuses a split that the checkpoint was not trained on, unless it is wanted: test items may have been trained on.
/// Likewise other times of a model that reads them.
recommend::SplitMatch check_split(const recommend::RecommenderCheckpoint& checkpoint, const data::LeaveOneOut& split,
                                  const EvaluateRecommendArguments& arguments) {
  const auto match = recommend::match_split(checkpoint, split);
  const std::string data = printable(arguments.data.path), model = printable(arguments.checkpoint);
  if (match == recommend::SplitMatch::unknown && arguments.layout == recommend::own_layout)
    print_notice(
        "gainlens: {}: its config.json holds no checksum of the split that it was trained on, so it cannot be checked "
        "whether test items were trained on\n",
        model);
  if (match == recommend::SplitMatch::other_times) {
    CHECK(arguments.other_split,
          "{}: has other times than the data that {} was trained on, and this model reads them: give the same file, or "
          "--other-split to rank it all the same",
          data, model);
    print_notice("gainlens: warning: {}: has other times than the data that {} was trained on\n", data, model);
  }
  if (match != recommend::SplitMatch::other) return match;
  CHECK(arguments.other_split,
        "{}: is split otherwise than the data that {} was trained on, so test items may have been trained on; the "
        "training had {}: give the same file and options, or --other-split to rank it all the same",
        data, model, checkpoint.data.options());
  print_notice(
      "gainlens: warning: {}: is split otherwise than the data that {} was trained on; test items may have been "
      "trained on, and then the metrics are too high\n",
      data, model);
  return match;
}

/// The items of a model that ranks users whom it was not trained on: those of the file may be fewer. Empty: those of
/// the file, which have to be all.
std::vector<std::string> catalogue_of(const recommend::RecommenderCheckpoint& checkpoint,
                                      const EvaluateRecommendArguments& arguments) {
  if (!arguments.other_split || arguments.layout != recommend::own_layout) return {};
  if (!checkpoint.items.empty() || !checkpoint.data.item_names.empty()) return checkpoint.items;
  std::vector<std::string> numbers;
  for (std::int64_t id = 1; id <= checkpoint.model->items(); ++id) numbers.push_back(std::to_string(id));
  return numbers;
}

/// What --top-k writes.
struct Recommended {
  recommend::Recommendations best;
  /// [user] lambda' of the last position after the whole history, mean over dimensions. Empty: no filter acts
  std::vector<double> precision;
};

OrderedJson to_json(const Recommended& found) {
  OrderedJson json = {{"items_of_a_user", found.best.count}};
  if (found.precision.empty()) return json;
  const auto [least, most] = std::ranges::minmax(found.precision);
  const double users = static_cast<double>(found.precision.size());
  const double sum = std::accumulate(found.precision.begin(), found.precision.end(), 0.0);
  json["precision"] = {{"mean", sum / users}, {"least", least}, {"most", most}};
  return json;
}

std::string_view held_out_in_words(bool validation) {
  return validation ? "the last but one (validation)" : "the last (test)";
}

/// A model that was ranked.
struct Evaluated {
  std::vector<float> ranks;             // [user]
  std::map<std::string, double> lists;  // metrics_of_lists()
  recommend::SplitMatch match;
  std::string unproven;  // why its files were not compared with checksums
  std::optional<Recommended> recommended;
};

/// What others have published with the protocol of this evaluation.
std::vector<analyses::PublishedResult> published_beside(const data::LeaveOneOut& split,
                                                        const EvaluateRecommendArguments& arguments) {
  if (arguments.validation || arguments.keep_seen || arguments.data.policy.options().split.in_time()) return {};
  return analyses::published_for(split.users(), split.items(), split.interactions().interaction_count(),
                                 split.checksum());
}

void print(const Evaluated& found, const data::LeaveOneOut& split, const EvaluateRecommendArguments& arguments,
           bool json) {
  OrderedJson metrics = metrics_of(found.ranks);
  const auto published = published_beside(split, arguments);
  if (json) {
    for (const auto& [name, value] : found.lists) metrics[name] = value;
    metrics["split"] = name_of(found.match);
    metrics["checksums"] = found.unproven.empty() ? "equal" : "not compared";
    if (found.recommended) metrics["recommendations"] = to_json(*found.recommended);
    if (!published.empty()) metrics["published"] = analyses::to_json(published);
    print_result("{}\n", json_text(metrics));
    return;
  }
  print_result("users              {}; {} items are ranked for each\n", found.ranks.size(), split.items());
  print_result("held-out item      {}\n", held_out_in_words(arguments.validation));
  for (const RankingMetric& metric : ranking_metrics())
    print_result("{:<18} {:.4f}\n", metric.name(), metrics[metric.name()].get<double>());
  for (const ListMetric& metric : list_metrics()) {
    const auto value = found.lists.find(std::string(metric.name));
    if (value != found.lists.end()) print_result("{:<18} {:.4f}\n", metric.name, value->second);
  }
  print_result("{}", published_lines(published));
}

/// The means of the metrics over the seeds, and what they were made of.
void print_given(const data::ItemRanks& given, const data::LeaveOneOut& split, bool validation, bool json) {
  OrderedJson seeds = OrderedJson::array();
  std::vector<std::vector<double>> values(ranking_metrics().size());  // [metric, seed]
  for (std::size_t seed = 0; seed < given.seeds.size(); ++seed) {
    OrderedJson seed_json = {{"seed", given.seeds[seed]}};
    for (std::size_t i = 0; i < values.size(); ++i)
      seed_json[ranking_metrics()[i].name()] = values[i].emplace_back(mean_of(ranking_metrics()[i], given.ranks[seed]));
    seeds.push_back(seed_json);
  }
  OrderedJson document;
  std::string lines;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::string name = ranking_metrics()[i].name();
    const analyses::ArmSummary summary = analyses::arm_summary(values[i]);
    document[name] = summary.mean;
    lines += fmt::format("{:<18} {:.4f}{}\n", name, summary.mean,
                         summary.deviation ? fmt::format(" ({:.4f})", *summary.deviation) : "");
  }
  document["users"] = split.users();
  document["seeds"] = seeds;
  if (json) {
    print_result("{}\n", json_text(document));
    return;
  }
  print_result("users              {}; of {} items\n", split.users(), split.items());
  print_result("held-out item      {}\n", held_out_in_words(validation));
  if (given.seeds.size() > 1)
    print_result("seeds              {}; means, and standard deviations over the seeds in brackets\n",
                 given.seeds.size());
  print_result("{}", lines);
}

/// Writes what --ranks reads.
/// @param seed  of the training; empty: not known
void write_ranks(const std::string& path, const data::LeaveOneOut& split, data::HeldOut held_out,
                 const std::vector<float>& ranks, const std::string& seed) {
  const data::Interactions& names = split.interactions();
  write_file_atomically(path, [&](OutputFile& file) {
    file.write(seed.empty() ? "user,target,rank\n" : "user,target,rank,seed\n");
    for (std::size_t user = 0; user < ranks.size(); ++user) {
      const auto target = static_cast<std::size_t>(split.target(static_cast<std::int64_t>(user), held_out));
      file.write(fmt::format("{},{},{}{}{}\n", reports::csv_field(names.users[user]),
                             reports::csv_field(names.items[target]), ranks[user], seed.empty() ? "" : ",", seed));
    }
  });
}

void write_recommendations(const std::string& path, const data::Interactions& interactions,
                           const Recommended& recommended) {
  const recommend::Recommendations& found = recommended.best;
  const bool with_precision = !recommended.precision.empty();
  write_file_atomically(path, [&](OutputFile& file) {
    file.write(with_precision ? "user,position,item,score,precision\n" : "user,position,item,score\n");
    for (std::size_t i = 0; i < found.items.size(); ++i) {
      const auto count = static_cast<std::size_t>(found.count);
      if (found.items[i] == 0) continue;  // the user has seen all the others
      const std::string precision =
          with_precision ? fmt::format(",{:.7g}", recommended.precision[i / count]) : std::string();
      file.write(fmt::format("{},{},{},{:.7g}{}\n", reports::csv_field(interactions.users[i / count]), i % count + 1,
                             reports::csv_field(interactions.items[static_cast<std::size_t>(found.items[i])]),
                             found.scores[i], precision));
    }
  });
}

/// "3 items for each of 499 users, fewer for 1 user and none for 1 user: they have seen the others". Users run out of
/// items that they have not seen.
std::string counts_in_words(const recommend::Recommendations& found) {
  const auto count = static_cast<std::size_t>(found.count);
  std::size_t all = 0, fewer = 0, none = 0;
  for (std::size_t first = 0; first < found.items.size(); first += count) {
    const std::size_t items = count - static_cast<std::size_t>(std::count(
                                          found.items.begin() + static_cast<std::ptrdiff_t>(first),
                                          found.items.begin() + static_cast<std::ptrdiff_t>(first + count), 0));
    ++(items == count ? all : items > 0 ? fewer : none);
  }
  std::string text = fmt::format("{} for each of {}", counted(count, "item"), counted(all, "user"));
  if (fewer == 0 && none == 0) return text;
  if (fewer > 0) text += fmt::format(", fewer for {}", counted(fewer, "user"));
  if (none > 0) text += fmt::format(", none for {}", counted(none, "user"));
  return text + "; the items that a user has seen are not recommended (--keep-seen keeps them)";
}

data::HeldOut held_out_of(const EvaluateRecommendArguments& arguments) {
  return arguments.validation ? data::HeldOut::validation : data::HeldOut::test;
}

/// Refuses what only a checkpoint has.
void check_source(const CLI::App& command, const EvaluateRecommendArguments& arguments) {
  CHECK(arguments.checkpoint.empty() != arguments.ranks.empty(),
        "evaluate recommend: give {}: --checkpoint ranks with a model, --ranks reads ranks made elsewhere",
        arguments.ranks.empty() ? "--checkpoint or --ranks" : "one of --checkpoint and --ranks");
  if (arguments.ranks.empty()) return;
  for (const char* option :
       {"--layout", "--heads", "--items", "--keep-seen", "--other-split", "--top-k", "--out", "--ranks-out"})
    CHECK(command.count(option) == 0, "{}: is an option of --checkpoint; leave it out", option);
}

/// Refuses names of files before anything is computed.
void check_files(const EvaluateRecommendArguments& arguments) {
  if (!arguments.out.empty()) check_is_new_file("--out", arguments.out, csv_file);
  if (arguments.ranks_out.empty()) return;
  check_is_new_file("--ranks-out", arguments.ranks_out, csv_file);
  CHECK(data::is_ranks_file(arguments.ranks_out) && std::filesystem::path(arguments.ranks_out).extension() == ".csv",
        "--ranks-out: {}: the file is plain CSV; give it a name that ends in .csv", printable(arguments.ranks_out));
  CHECK(arguments.out.empty() ||
            std::filesystem::weakly_canonical(arguments.out) != std::filesystem::weakly_canonical(arguments.ranks_out),
        "--ranks-out: {} is the file of --out; choose another name", printable(arguments.ranks_out));
}

void evaluate_ranks(const EvaluateRecommendArguments& arguments, const GlobalOptions& global) {
  const data::LeaveOneOut split(arguments.data.read());
  const data::ItemRanks ranks = data::read_item_ranks(arguments.ranks, split, held_out_of(arguments));
  arguments.data.tell_left_out(split.interactions());
  print_given(ranks, split, arguments.validation, global.json);
}

void run(const EvaluateRecommendArguments& arguments, const GlobalOptions& global) {
  CHECK(arguments.top_k.value_or(1) >= 1, "--top-k: {}; at least 1 is needed", *arguments.top_k);
  CHECK(arguments.top_k.has_value() == !arguments.out.empty(),
        "--top-k and --out belong together: give both or neither");
  check_files(arguments);
  recommend::refuse_run_for_checkpoint(arguments.checkpoint);
  const auto checkpoint =
      recommend::open_recommender(arguments.checkpoint, arguments.layout, {arguments.heads, arguments.items});
  const data::LeaveOneOut split(arguments.data.read(catalogue_of(checkpoint, arguments)));
  recommend::check_catalogue(checkpoint, split.interactions(), printable(arguments.data.path));
  const auto match = check_split(checkpoint, split, arguments);
  const bool own = arguments.layout == recommend::own_layout;
  const std::string unproven = own ? checkpoint.unproven : "it is of another layout";
  if (own && !unproven.empty())
    print_notice("gainlens: {}: its files were not compared with checksums: {}\n", printable(arguments.checkpoint),
                 unproven);
  arguments.data.tell_left_out(split.interactions());
  recommend::BackboneScorer scorer(*checkpoint.model);
  recommend::RankingOptions options;
  options.keep_seen = arguments.keep_seen;
  const data::HeldOut held_out = held_out_of(arguments);
  Evaluated found{rank_all(scorer, split, held_out, options), {}, match, unproven, std::nullopt};
  const std::int64_t absent = split.interactions().absent_items;
  if (absent == 0)
    found.lists = list_metrics_of(scorer, split, held_out, options);
  else
    print_notice(
        "gainlens: {}: {} of the {} items of {} are not in it; they are candidates too, and what lists are like, which "
        "depends on training counts, is not said\n",
        printable(arguments.data.path), absent, split.items(), printable(arguments.checkpoint));
  if (!arguments.out.empty()) {
    Recommended& recommended = found.recommended.emplace();
    recommend::BackboneScorer with_precision(*checkpoint.model, &recommended.precision);
    recommended.best = recommend_all(with_precision, split, *arguments.top_k, options);
  }
  print(found, split, arguments, global.json);
  if (!arguments.ranks_out.empty()) write_ranks(arguments.ranks_out, split, held_out, found.ranks, checkpoint.seed);
  if (!found.recommended) return;
  write_recommendations(arguments.out, split.interactions(), *found.recommended);
  print_notice("{}: {}\n", printable(arguments.out), counts_in_words(found.recommended->best));
}

}  // namespace

void add_evaluate_recommend(CLI::App& evaluate, const GlobalOptions& global, Action& action) {
  CLI::App* command = add_subcommand(
      evaluate,
      {"recommend",
       "Measure how well a recommender ranks the item that each user chose last, among all items of the catalogue"},
      "gainlens evaluate recommend --checkpoint RUN/plain/seed-0 --data ratings.dat",
      "Ranks count from 1, the best; items with equal scores share ranks. Items that the user has seen are no\n"
      "candidates, unless --keep-seen is given; the item to be found always is one. hr@k is the share of users with a\n"
      "rank of at most k, ndcg@k the mean of 1 / log2(1 + rank) over such ranks, mrr the mean of 1 / rank. "
      "coverage@10\n"
      "is the share of the catalogue that stands in a user's list of the ten best, novelty@10 how rare its items are "
      "in\n"
      "bits, popular@10 the share of the most frequent fifth of the items in these lists.\n"
      "--top-k writes, for each user, the best items after all that is known: training, validation and test. A model\n"
      "whose filter acts gives its precision too: that of its state at the last position, after the last layer. A "
      "high\n"
      "one claims that the state is known well; gainlens error-by-precision tests the claim.");
  auto arguments = std::make_shared<EvaluateRecommendArguments>();
  command->add_option("--checkpoint", arguments->checkpoint, "Folder or safetensors file of the model");
  command->add_option("--ranks", arguments->ranks,
                      "In the place of --checkpoint: CSV file of ranks made elsewhere, with the columns user, target,\n"
                      "rank, and seed if there are several");
  command
      ->add_option(
          "--layout", arguments->layout,
          "gainlens: a folder that gainlens train recommend wrote; recbole: SASRec of RecBole (.pth); pmixer:\n"
          "SASRec.pytorch (.pth), with its args.txt beside it; iclrec: a file with the names of S3-Rec")
      ->capture_default_str();
  command->add_option("--heads", arguments->heads,
                      "Number of attention heads, for the layout iclrec, which has no config (default: 2)");
  command->add_option("--items", arguments->items,
                      "CSV file with the columns item and id: which id another program gave each item. Needed for the\n"
                      "layout recbole");
  add_interaction_options(*command, arguments->data);
  command->add_flag("--keep-seen", arguments->keep_seen, "Items that the user has seen stay candidates");
  command->add_flag("--other-split", arguments->other_split,
                    "Rank although the data are split otherwise than those of the training, or hold other users;\n"
                    "their items may be fewer");
  command->add_flag("--validation", arguments->validation, "Rank the last item but one instead of the last");
  command->add_option("--top-k", arguments->top_k, "Number of items to recommend to each user, written to --out");
  command->add_option(
      "--out", arguments->out,
      "CSV file for the recommendations: user, position, item, score, and precision where a filter acts");
  command->add_option(
      "--ranks-out", arguments->ranks_out,
      "CSV file for the ranks of all users: user, target, rank, and seed where it is known; --ranks and\n"
      "gainlens compare read it");
  set_action(*command, action, [arguments, command, &global] {
    check_source(*command, *arguments);
    arguments->ranks.empty() ? run(*arguments, global) : evaluate_ranks(*arguments, global);
  });
}

}  // namespace gainlens::cli
