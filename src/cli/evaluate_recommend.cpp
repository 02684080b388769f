#include "cli/commands.h"
#include "cli/interaction_options.h"
#include "core/atomic_file.h"
#include "core/check.h"
#include "core/console.h"
#include "core/json.h"
#include "core/ranking_metrics.h"
#include "data/leave_one_out.h"
#include "recommend/full_ranking.h"
#include "recommend/sasrec.h"
#include "recommend/sasrec_checkpoint.h"

#include <memory>
#include <string>
#include <vector>

namespace gainlens::cli {
namespace {

struct EvaluateRecommendArguments {
  std::string checkpoint;
  std::string layout = "gainlens";
  std::int64_t heads = 2;
  InteractionArguments data;
  bool keep_seen = false;
  bool validation = false;
  std::int64_t top_k = 0;
  std::string out;
};

OrderedJson metrics_of(const std::vector<float>& ranks) {
  OrderedJson found;
  for (const RankingMetric& metric : ranking_metrics()) found[metric.name()] = mean_of(metric, ranks);
  found["users"] = ranks.size();
  return found;
}

void print(const std::vector<float>& ranks, const data::LeaveOneOut& split, bool validation, bool json) {
  const OrderedJson metrics = metrics_of(ranks);
  if (json) {
    print_result("{}\n", json_text(metrics));
    return;
  }
  print_result("users              {}; {} items are ranked for each\n", ranks.size(), split.items());
  print_result("held-out item      {}\n", validation ? "the last but one (validation)" : "the last (test)");
  for (const RankingMetric& metric : ranking_metrics())
    print_result("{:<18} {:.4f}\n", metric.name(), metrics[metric.name()].get<double>());
}

/// A field of a CSV file: quoted if it needs to be (RFC 4180).
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

void write_recommendations(const std::string& path, const data::Interactions& interactions,
                           const recommend::Recommendations& found) {
  write_file_atomically(path, [&](OutputFile& file) {
    file.write("user,position,item,score\n");
    for (std::size_t i = 0; i < found.items.size(); ++i) {
      const auto count = static_cast<std::size_t>(found.count);
      if (found.items[i] == 0) continue;  // the user has seen all the others
      file.write(fmt::format("{},{},{},{:.7g}\n", csv_field(interactions.users[i / count]), i % count + 1,
                             csv_field(interactions.items[static_cast<std::size_t>(found.items[i])]), found.scores[i]));
    }
  });
}

void run(const EvaluateRecommendArguments& arguments, const GlobalOptions& global) {
  CHECK((arguments.top_k > 0) == !arguments.out.empty(), "--top-k and --out belong together: give both or neither");
  const auto layout = recommend::parse_checkpoint_layout(arguments.layout);
  auto checkpoint = recommend::load_sasrec(arguments.checkpoint, layout, arguments.heads);
  const data::LeaveOneOut split(arguments.data.read());
  recommend::check_catalogue(checkpoint, split.interactions(), printable(arguments.data.path));
  const recommend::SasRec model(checkpoint.config, std::move(checkpoint.weights));
  recommend::SasRecScorer scorer(model);
  recommend::RankingOptions options;
  options.keep_seen = arguments.keep_seen;
  const auto held_out = arguments.validation ? data::HeldOut::validation : data::HeldOut::test;
  print(rank_all(scorer, split, held_out, options), split, arguments.validation, global.json);
  if (arguments.out.empty()) return;
  write_recommendations(arguments.out, split.interactions(), recommend_all(scorer, split, arguments.top_k, options));
  print_notice("{}: {} items for each of {} users\n", arguments.out, arguments.top_k, split.users());
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
      "rank of at most k, ndcg@k the mean of 1 / log2(1 + rank) over such ranks, mrr the mean of 1 / rank.\n"
      "--top-k writes, for each user, the best items after all that is known: training, validation and test.");
  auto arguments = std::make_shared<EvaluateRecommendArguments>();
  command->add_option("--checkpoint", arguments->checkpoint, "Folder or safetensors file of the model")->required();
  command
      ->add_option("--layout", arguments->layout,
                   "gainlens: a folder that gainlens train recommend wrote; iclrec: a file with the names of S3-Rec")
      ->capture_default_str();
  command
      ->add_option("--heads", arguments->heads, "Number of attention heads, for the layout iclrec, which has no config")
      ->capture_default_str();
  add_interaction_options(*command, arguments->data);
  command->add_flag("--keep-seen", arguments->keep_seen, "Items that the user has seen stay candidates");
  command->add_flag("--validation", arguments->validation, "Rank the last item but one instead of the last");
  command->add_option("--top-k", arguments->top_k, "Number of items to recommend to each user, written to --out");
  command->add_option("--out", arguments->out, "CSV file for the recommendations: user, position, item, score");
  command->callback([arguments, &global, &action] { action = [arguments, &global] { run(*arguments, global); }; });
}

}  // namespace gainlens::cli
