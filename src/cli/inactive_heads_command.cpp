#include "cli/application.h"

#include "analyses/inactive_heads.h"
#include "cli/command_options.h"
#include "cli/given_run.h"
#include "cli/interruption.h"
#include "cli/model_options.h"
#include "cli/run_kinds.h"
#include "core/check.h"
#include "core/console.h"
#include "core/counted.h"
#include "core/json.h"
#include "core/listener.h"
#include "core/quantity.h"
#include "interventions/run_interventions.h"
#include "models/checkpoint/checkpoint_source.h"
#include "reports/inactive_heads/inactive_heads_report.h"
#include "runfile/checksums.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>

namespace gainlens::cli {
namespace {

struct InactiveHeadsArguments : ModelArguments {
  TextOptions text;
  std::string run;
  std::string lengths;
  std::int64_t samples = 16;
  std::optional<std::int64_t> targets;
  std::optional<std::int64_t> draws;
  std::string out;
  std::string report;
};

/// @throws InvalidArgument  the run is one of another model, or of some of its layers
void check_same_model(const runfile::RunReader& reader, const models::CheckpointSource& checkpoint) {
  const std::string where = printable(reader.path().string());
  CHECK(runfile::HashCache::for_user().sha256_by_name(checkpoint.files) == reader.request().model,
        "--run: {} is a sweep of another model; sweep this one", where);
  const std::int64_t layers = checkpoint.config.layers;
  CHECK(checkpoint.config.attention_layers(layers) == layers, "--run: the model has layers of {}, which have no heads",
        checkpoint.config.without_attention());
  CHECK(std::ssize(reader.layers()) == layers, "--run: {} has {} of {} layers; sweep all of them", where,
        reader.layers().size(), layers);
}

/// Heads that are set to zero together, as an intervention.
interventions::Intervention zeroed(std::vector<std::size_t> heads, std::size_t heads_of_layer) {
  std::ranges::sort(heads);
  interventions::Intervention made;
  for (const std::size_t head : heads) {
    interventions::Write& write = made.writes.emplace_back();
    write.site = fmt::format("blocks.{}.attn.hook_z", head / heads_of_layer);
    write.head = static_cast<std::int64_t>(head % heads_of_layer);
  }
  return made;
}

/// The sets of one order: its first heads, for each number of them.
std::vector<interventions::Intervention> sets_of(const std::vector<std::size_t>& order, std::size_t heads_of_layer) {
  std::vector<interventions::Intervention> sets;
  for (const std::size_t count : analyses::zeroed_counts(order.size())) {
    sets.push_back(zeroed({order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count)}, heads_of_layer));
  }
  return sets;
}

/// Everything that is set to zero, set by set.
struct Plan {
  std::vector<interventions::Intervention> single;                  // [head]
  std::vector<std::vector<interventions::Intervention>> by_score;   // [score][share]
  std::vector<std::vector<interventions::Intervention>> by_random;  // [draw][share]

  /// Each once. Single heads are those of --each-head.
  std::vector<interventions::Intervention> together() const {
    std::vector<interventions::Intervention> all;
    std::set<std::string> texts;
    for (const auto* sets : {&by_score, &by_random}) {
      for (const auto& order : *sets)
        for (const interventions::Intervention& set : order)
          if (set.writes.size() > 1 && texts.insert(set.text()).second) all.push_back(set);
    }
    return all;
  }
};

Plan plan_of(const std::vector<analyses::HeadScore>& scores, std::size_t heads_of_layer, std::int64_t draws,
             std::uint64_t seed) {
  const std::size_t heads = scores.front().values.size();
  Plan plan;
  for (std::size_t head = 0; head < heads; ++head) plan.single.push_back(zeroed({head}, heads_of_layer));
  for (const analyses::HeadScore& score : scores)
    plan.by_score.push_back(sets_of(analyses::order_of(score), heads_of_layer));
  for (std::int64_t draw = 0; draw < draws; ++draw) {
    plan.by_random.push_back(
        sets_of(analyses::random_order(heads, seed, static_cast<std::size_t>(draw)), heads_of_layer));
  }
  return plan;
}

/// The random orders that were asked for. A run that was begun when 5 were the default goes on with them.
std::int64_t draws_of(const InactiveHeadsArguments& arguments, const std::vector<analyses::HeadScore>& scores,
                      std::size_t heads_of_layer, std::uint64_t seed) {
  constexpr std::int64_t draws = analyses::fewest_ranked_draws, earlier_draws = 5;
  if (arguments.draws) return *arguments.draws;
  const std::filesystem::path kept = std::filesystem::path(arguments.out) / "request.json";
  if (arguments.out.empty() || !std::filesystem::exists(kept)) return draws;
  const Json request = read_json_file(kept);
  const Plan earlier = plan_of(scores, heads_of_layer, earlier_draws, seed);
  const std::size_t count = earlier.single.size() + earlier.together().size();
  if (!request.is_object() || request.value("interventions", Json()).size() != count) return draws;
  tell_note("--out: was begun with {} random orders and goes on with them; a new folder has {}", earlier_draws, draws);
  return earlier_draws;
}

interventions::InterveneOptions options_of(const InactiveHeadsArguments& arguments, const GlobalOptions& global,
                                           const Plan& plan) {
  interventions::InterveneOptions options;
  arguments.give(options, global, "inactive-heads");
  options.source = arguments.text.source();
  options.length = parse_count(arguments.lengths, "--lengths");
  CHECK(arguments.samples >= 1, "--samples: {}; must be at least 1", arguments.samples);
  options.samples = arguments.samples;
  options.targets = chosen_targets(arguments.targets);
  options.given = plan.together();
  options.every.heads = true;
  options.allow_extrapolation = arguments.allow_extrapolation;
  options.seed = global.seed;
  check_can_be_run_folder(arguments.out);
  options.out = arguments.out;
  return options;
}

/// Changes of the loss by document, of interventions by their text.
class Changes {
 public:
  explicit Changes(const runfile::InterventionRun& run) {
    for (std::size_t arm = 0; arm < run.arms.size(); ++arm) {
      std::vector<double>& changes = by_text_[run.arms[arm].text];
      for (std::size_t document = 0; document < run.documents(); ++document)
        changes.push_back(run.effects[arm][document].nll - run.native[document]);
    }
  }
  std::vector<std::vector<double>> of(const std::vector<interventions::Intervention>& sets) const {
    std::vector<std::vector<double>> changes(sets.size());
    std::ranges::transform(sets, changes.begin(), [&](const auto& set) { return by_text_.at(set.text()); });
    return changes;
  }

 private:
  std::map<std::string, std::vector<double>> by_text_;
};

void find_inactive_heads(const InactiveHeadsArguments& arguments, const GlobalOptions& global) {
  if (!arguments.report.empty()) check_report_folder(arguments.report, arguments.out);
  CHECK(arguments.draws.value_or(1) >= 1, "--draws: {}; must be at least 1", *arguments.draws);
  const std::filesystem::path model = locate_language_model(arguments.model, "inactive-heads");
  const GivenRun given = open_given_run(arguments.run);
  check_same_model(given.reader, models::open_checkpoint(model, arguments.ignored_config_keys));
  analyses::InactiveHeadsInput input;
  analyses::HeadScores found = analyses::head_scores(given.reader);
  for (const std::string& reason : found.left_out) tell_note("left out: {}", reason);
  input.scores = std::move(found.scores);
  const std::size_t heads = input.scores.front().values.size();
  for (const std::size_t count : analyses::zeroed_counts(heads))
    input.shares.push_back(static_cast<double>(count) / static_cast<double>(heads));
  const auto heads_of_layer = static_cast<std::size_t>(given.reader.heads());
  const Plan plan = plan_of(input.scores, heads_of_layer,
                            draws_of(arguments, input.scores, heads_of_layer, global.seed), global.seed);
  interventions::InterveneOptions options = options_of(arguments, global, plan);
  options.other_text = given.reader.request().text;
  const ScopedInterruption told(arguments.out, "every finished layer of every document");
  const runfile::InterventionRun run = interventions::run_interventions(options);
  const Changes changes(run);
  input.single = changes.of(plan.single);
  for (const auto& sets : plan.by_score) input.by_score.push_back(changes.of(sets));
  for (const auto& sets : plan.by_random) input.by_random.push_back(changes.of(sets));
  const analyses::InactiveHeads result = analyses::inactive_heads(input);
  const std::string of = measured_tokens(run, arguments.out);
  if (!arguments.report.empty())
    tell_written(reports::write_inactive_heads_report(result, of, arguments.report), arguments.report,
                 "inactive-heads");
  print_result("{}", global.json ? json_text(to_json(result)) + "\n" : reports::print_inactive_heads(result, of));
}

}  // namespace

void add_inactive_heads(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* command = add_subcommand(
      app, subcommand_named("inactive-heads"),
      "gainlens inactive-heads MODEL --run sweep --text wiki.valid.txt --lengths 512 --samples 16 --out run",
      "Scores every head by what a sweep has stored: by numbers of the literature (weight of key 0, entropy, |v_0|,\n"
      "mean |v|, |e|, each raw and over the mean of its layer) and by those of the filter (n_eff, K, scaled K, |K o "
      "e|,\n"
      "lambda_obs). The 5, 10, .. 30% of heads that a score calls inactive are set to zero together, at the result of\n"
      "attention, and so are as many random heads. The less the loss grows, the better the score.\n"
      "docs/analyses/inactive-heads.md tells how to read the table.");
  auto arguments = std::make_shared<InactiveHeadsArguments>();
  add_model_option(*command, arguments->model);
  command->add_option("--run", arguments->run, "Run of `gainlens sweep` of this model, all layers, another text")
      ->required();
  add_text_options(*command, arguments->text);
  command->add_option("--lengths", arguments->lengths, "Tokens of a document, BOS included: one number; 1k is 1024")
      ->required();
  command->add_option("--samples", arguments->samples, "Number of documents")->capture_default_str();
  add_targets_option(*command, arguments->targets);
  command->add_option("--draws", arguments->draws,
                      "Number of random orders of heads (default: 39, the fewest that give a p)");
  add_dtype_option(*command, arguments->dtype);
  add_stream_weights(*command, arguments->stream_weights);
  command->add_flag("--allow-extrapolation", arguments->allow_extrapolation,
                    "Allow a length above the model's number of positions");
  command->add_option("--out", arguments->out,
                      "Run folder that keeps the interventions, as that of intervene. The same command called again "
                      "continues it, or prints it");
  command->add_option(
      "--report", arguments->report,
      "Folder for report.html, summary.json, the figure of the losses by shares of heads, and tables as "
      "CSV; made if it does not exist");
  add_ignored_keys(*command, arguments->ignored_config_keys);
  set_action(*command, action, [arguments, &global] { find_inactive_heads(*arguments, global); });
}

}  // namespace gainlens::cli
