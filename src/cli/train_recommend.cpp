#include "recommend/train_recommend.h"
#include "analyses/seed_comparison.h"
#include "cli/application.h"
#include "cli/command_options.h"
#include "cli/given_run.h"
#include "cli/interruption.h"
#include "cli/training_options.h"
#include "core/check.h"
#include "core/console.h"
#include "core/counted.h"
#include "core/json.h"
#include "core/knobs.h"
#include "core/ranking_metrics.h"
#include "core/short_text.h"
#include "recommend/arm.h"
#include "recommend/idle_settings.h"
#include "recommend/settings.h"
#include "recommend/variants.h"
#include "runfile/process_group.h"
#include "training/replicas.h"

#include <ATen/Parallel.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::cli {
namespace {

/// What --grid asks for: variants of a run that each change one setting.
struct Grid {
  std::vector<recommend::Variant> variants;  ///< named KEY-VALUE, the value in the fewest characters
  std::vector<std::string> own_settings;     ///< "initial_gain 0.9": what is the run's own setting, and so no variant
};

/// The paper names the range of few knobs: warm-up 0 to 200 and more, lambda_max 10 to 100, "an order of magnitude" for
/// the others. Each has the paper's default among its settings.
constexpr std::string_view paper_grid[] = {
    "initial_gain=0.5,0.7,0.9,0.95,0.99", "initial_decay=0.9,0.95,0.99,0.999",
    "most_process_noise=0.01,0.1,1,10",   "prior_variance=0,0.01,0.1,1",
    "warm_up=0,50,100,200,500",           "precision_learning_rate=1,10,100,300,1000",
    "most_precision=10,20,50,100,200",
};

struct GridText {
  std::string key;
  std::vector<std::string> values;  // as typed
};

GridText parse(std::string_view text) {
  const auto check = [&](bool fits) {
    CHECK(fits, "--grid: '{}'; must be paper, or a setting with its values, such as initial_gain=0.5,0.7,0.95",
          printable(text, 100));
  };
  const std::size_t equals = text.find('=');
  check(equals != std::string_view::npos && equals > 0);
  GridText grid{std::string(text.substr(0, equals)), {}};
  std::ranges::replace(grid.key, '-', '_');
  for (std::size_t begin = equals + 1; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    grid.values.emplace_back(text.substr(begin, end - begin));
    check(!grid.values.back().empty());
    begin = end + 1;
  }
  check(!grid.values.empty());
  return grid;
}

/// The value of a setting in all settings of a run with this change.
Json value_in(const recommend::Settings& run, const Json& change, const std::string& key, const std::string& where) {
  recommend::check_settings(change, where, *run.backbone);
  Json all = Json(recommend::to_json(run));
  all.update(change);
  return Json(recommend::to_json(recommend::settings_of(all, where, *run.backbone))).at(key);
}

void check_arms_read(const std::string& key, const std::vector<std::string>& arms, const recommend::Settings& run) {
  for (const std::string& arm : arms) {
    const std::string reason = recommend::why_idle(run, arm, key);
    CHECK(reason.empty(),
          "--grid {}: changes nothing in arm {}, because {}; train this arm in another call into the same folder, "
          "without --grid",
          key, arm, reason);
  }
}

void add(Grid& grid, const GridText& text, const std::vector<std::string>& arms, const recommend::Settings& run) {
  const Json own = Json(recommend::to_json(run));
  for (const std::string& typed : text.values) {
    const std::string where = "--grid " + printable(text.key, 60);
    const Json value = value_in(run, {{text.key, knob_value(typed)}}, text.key, where);
    const std::string shown = short_text(value);
    if (text.values.front() == typed) check_arms_read(text.key, arms, run);
    const std::string name = text.key + "-" + shown, own_setting = text.key + " " + shown;
    CHECK(std::ranges::count(grid.variants, name, &recommend::Variant::name) == 0 &&
              std::ranges::count(grid.own_settings, own_setting) == 0,
          "{}: {} stands twice", where, shown);
    if (value == own.at(text.key))
      grid.own_settings.push_back(own_setting);
    else
      grid.variants.push_back({name, {{text.key, value}}});
  }
}

/// @param texts  each "KEY=VALUE,VALUE,...", or "paper": the seven knobs of the paper over their design range
/// @param arms   to be trained
/// @param run    the settings without a variant
/// Source: bft.tex, appendix ablations, for the knobs; it does not print their settings.
/// @throws InvalidArgument  another form; an unknown key (nearest match named); a value of the wrong type or out of
///     range; a setting that stands twice; a setting that an arm does not read
Grid parse_grid(const std::vector<std::string>& texts, const std::vector<std::string>& arms,
                const recommend::Settings& run) {
  Grid grid;
  for (const std::string& text : texts) {
    if (text == "paper") {
      for (const std::string_view knob : paper_grid) add(grid, parse(knob), arms, run);
    } else {
      add(grid, parse(text), arms, run);
    }
  }
  return grid;
}

struct TrainRecommendArguments {
  InteractionArguments data;
  std::string backbone = recommend::backbones().front().name;
  std::vector<std::string> arms = {"plain"};
  std::int64_t seeds = 1;
  std::optional<std::int64_t> seeds_at_once;
  std::string preset = recommend::presets().front().name;
  std::string config;
  std::map<std::string, std::string> knobs;  // as given on the command line
  std::vector<std::string> variants, grid;
  bool no_jacobian = false, no_time_bias = false;
  std::string spread = "batches";
  std::string out;
};

recommend::Settings settings_of(const TrainRecommendArguments& arguments) {
  const recommend::BackboneKind& backbone = recommend::backbone_named(arguments.backbone, "--backbone");
  Json changes = recommend::preset(arguments.preset, backbone);
  if (!arguments.config.empty()) {
    const Json given = read_json_file(arguments.config);
    recommend::check_settings(given, printable(arguments.config), backbone);  // names the file in messages
    changes.update(given);
  }
  const std::span<const Knob<recommend::Settings>> known = recommend::knobs(backbone);
  for (const auto& [key, text] : arguments.knobs) {
    if (text.empty()) continue;
    CHECK(std::ranges::find(known, key, &Knob<recommend::Settings>::key) != known.end(),
          "{}: backbone {} has no such setting", knob_option(key), backbone.name);
    const Json change = {{key, knob_value(text)}};
    recommend::check_settings(change, knob_option(key), backbone);
    changes.update(change);
  }
  return recommend::settings_of(changes, "settings", backbone);
}

/// A variant as the command line gives it: NAME:key=value,key=value.
recommend::Variant parse_variant(const std::string& text) {
  const auto check = [&](bool fits) {
    CHECK(fits,
          "--variant: '{}'; must be a name with settings, NAME:key=value,key=value, such as wide:width=128,dropout=0.2",
          printable(text, 100));
  };
  const std::size_t colon = text.find(':');
  check(colon != std::string::npos);
  recommend::Variant variant{text.substr(0, colon), Json::object()};
  for (std::size_t begin = colon + 1; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string setting = text.substr(begin, end - begin);
    const std::size_t equals = setting.find('=');
    check(equals != std::string::npos && equals > 0 && equals + 1 < setting.size());
    std::string key = setting.substr(0, equals);
    std::ranges::replace(key, '-', '_');
    CHECK(!variant.changes.contains(key), "--variant {}: '{}' is given twice", printable(variant.name, 60),
          printable(key, 60));
    variant.changes[key] = knob_value(setting.substr(equals + 1));
    begin = end + 1;
  }
  return variant;
}

OrderedJson to_json(const experiment::Outcome& done, std::int64_t items) {
  const std::string diverged = runfile::divergence_of(done.result, items);
  OrderedJson document = {{"arm", done.job.arm},
                          {"seed", done.job.seed},
                          {"best_epoch", done.result.best_epoch},
                          {"epochs", runfile::epochs_of(done.result)},
                          {"seconds", done.seconds},
                          {"validation", runfile::validation_of(done.result)},
                          {"test", done.result.test},
                          {"diverged", diverged.empty() ? Json() : Json(diverged)}};
  if (!done.job.variant.empty()) document["variant"] = done.job.variant;
  return document;
}

/// Mean and standard deviation of each metric over the seeds of an arm. An arm without training is the same with every
/// seed, and has no deviation, like one seed.
/// @param label  of the arm, with its variant
std::string arm_lines(const std::string& label, const recommend::RecommendOutcome& outcome) {
  std::vector<const runfile::TrainedSeed*> seeds;
  for (const auto& done : outcome.seeds) {
    if (done.job.label() == label) seeds.push_back(&done.result);
  }
  std::string lines =
      fmt::format("{}, mean (standard deviation) over {} on the test items:", label, counted(seeds.size(), "seed"));
  const bool trained = std::ranges::any_of(seeds, [](const auto* seed) { return seed->best_epoch > 0; });
  for (const RankingMetric& metric : ranking_metrics()) {
    std::vector<double> values;
    values.reserve(seeds.size());
    for (const auto* seed : seeds) values.push_back(seed->test.at(metric.name()));
    if (values.empty()) continue;
    const analyses::ArmSummary summary = analyses::arm_summary(values);
    lines += fmt::format("\n  {:<8} {:.4f} ({})", metric.name(), summary.mean,
                         trained && summary.deviation ? fmt::format("{:.4f}", *summary.deviation) : "-");
  }
  return lines;
}

void print(const recommend::RecommendOutcome& outcome, const TrainRecommendArguments& arguments, std::int64_t items,
           bool json) {
  for (const auto& seed : outcome.seeds) {
    const std::string diverged = runfile::divergence_of(seed.result, items);
    if (!diverged.empty())
      print_notice("gainlens: warning: {} seed {} has diverged: {}; a smaller --learning-rate may help\n",
                   seed.job.label(), seed.job.seed, diverged);
  }
  if (json) {
    OrderedJson seeds = OrderedJson::array();
    for (const auto& seed : outcome.seeds) seeds.push_back(to_json(seed, items));
    print_result("{}\n", json_text({{"run", arguments.out},
                                    {"seeds_at_once", outcome.seeds_at_once},
                                    {"threads_of_seed", outcome.threads_of_seed},
                                    {"seeds", seeds}}));
    return;
  }
  std::size_t width = 12;
  for (const auto& seed : outcome.seeds) width = std::max(width, seed.job.label().size());
  print_result("{:<{}} {:>6} {:>6} {:>7} {:>8} {:>8} {:>8} {:>8}\n", "arm", width, "seed", "epochs", "best", "hr@10",
               "ndcg@10", "mrr", "seconds");
  for (const auto& seed : outcome.seeds) {
    const auto& [job, result, seconds] = seed;
    print_result("{:<{}} {:>6} {:>6} {:>7} {:>8.4f} {:>8.4f} {:>8.4f} {:>8.1f}\n", job.label(), width, job.seed,
                 runfile::epochs_of(result), result.best_epoch, result.test.at("hr@10"), result.test.at("ndcg@10"),
                 result.test.at("mrr"), seconds);
  }
  std::vector<std::string> labels;
  for (const auto& seed : outcome.seeds) {
    if (labels.empty() || labels.back() != seed.job.label()) labels.push_back(seed.job.label());
  }
  for (const std::string& label : labels) print_result("{}\n", arm_lines(label, outcome));
}

/// Refuses options that change nothing in any of the arms. Baselines without training read none, which is no reason.
void check_idle_options(const TrainRecommendArguments& arguments, const recommend::Settings& settings) {
  const auto is_of_filter = [](const std::string& key) {
    return key == "precision_learning_rate" || key == "permute_popularity" ||
           std::ranges::any_of(bft::filter_knobs(), [&](const auto& knob) { return knob.key == key; });
  };
  for (const auto& [key, text] : arguments.knobs) {
    const bool is_loss_knob = key == "negatives" || key == "negative_exponent", is_filter_knob = is_of_filter(key);
    const bool is_model_knob =
        std::ranges::any_of(settings.backbone->knobs, [&](const auto& knob) { return knob.key == key; });
    if (text.empty() || !(is_loss_knob || is_filter_knob || is_model_knob)) continue;
    if (is_loss_knob) {
      CHECK(settings.loss == recommend::LossKind::sampled,
            "{}: has no effect, because 'loss' is \"full\"; give --loss sampled too", knob_option(key));
      continue;
    }
    std::map<std::string, std::string> reasons;  // by arm
    for (const std::string& arm : arguments.arms) {
      // A key of the model is not one of a filter: it acts in every arm that is trained but for those that say why not.
      if (is_model_knob && recommend::find_arm(arm) == nullptr) continue;
      reasons[arm] = recommend::why_idle(settings, arm, key);
    }
    if (is_model_knob && reasons.empty()) continue;
    if (std::ranges::any_of(reasons, [](const auto& reason) { return reason.second.empty(); })) continue;
    CHECK(!is_model_knob, "{}: has no effect, because {}", knob_option(key), reasons.begin()->second);
    const bool has_parts = std::ranges::any_of(arguments.arms, [](const std::string& arm) {
      const recommend::ArmParts* const parts = recommend::find_arm(arm);
      return parts != nullptr && parts->has_filter_part();
    });
    CHECK(has_parts, "{}: is an option of the filter; give --arm bft too", filter_option(key, arguments.no_jacobian));
    const auto bft_reason = reasons.find("bft");
    throw_invalid("{}: has no effect, because {}", filter_option(key, arguments.no_jacobian),
                  bft_reason != reasons.end() ? bft_reason->second : reasons.begin()->second);
  }
}

/// Refuses variants that cannot be told apart, and settings of a variant that change nothing in it.
void check_variants(const TrainRecommendArguments& arguments, const recommend::RecommendRequest& request) {
  const auto settings = recommend::settings_of_variants(request.variants, request.settings);
  for (const recommend::Variant& variant : request.variants) {
    TrainRecommendArguments variant_arguments = arguments;
    variant_arguments.no_jacobian = false;
    for (auto& [key, text] : variant_arguments.knobs)
      text = variant.changes.contains(key) ? variant.changes[key].dump() : "";
    try {
      check_idle_options(variant_arguments, settings.at(variant.name));
    } catch (const InvalidArgument& error) {
      throw_invalid("--variant {}: {}", variant.name, error.what());
    }
  }
}

/// A grid has the run's own settings as its reference.
/// @returns  the settings of the grid that are the run's own
std::vector<std::string> add_grid(const TrainRecommendArguments& arguments, recommend::RecommendRequest& request) {
  if (arguments.grid.empty()) return {};
  const Grid grid = parse_grid(arguments.grid, arguments.arms, request.settings);
  request.variants.insert(request.variants.end(), grid.variants.begin(), grid.variants.end());
  request.own_settings_too = true;
  return grid.own_settings;
}

void run(const TrainRecommendArguments& arguments, const GlobalOptions& global) {
  CHECK(arguments.seeds_at_once.value_or(1) >= 1, "--seeds-at-once: {}; at least 1 is needed",
        *arguments.seeds_at_once);
  recommend::RecommendRequest request;
  request.settings = settings_of(arguments);
  recommend::check_arms(arguments.arms);
  recommend::check_seeds(global.seed, arguments.seeds);
  check_can_be_run_folder(arguments.out);
  for (const std::string& text : arguments.variants) request.variants.push_back(parse_variant(text));
  const std::vector<std::string> own_settings = add_grid(arguments, request);
  check_variants(arguments, request);
  if (request.variants.empty() || request.own_settings_too) check_idle_options(arguments, request.settings);
  request.arms = arguments.arms;
  request.seeds = arguments.seeds;
  request.seed = global.seed;
  request.out = arguments.out;
  request.threads = global.threads > 0 ? global.threads : at::get_num_threads();
  request.seeds_at_once = arguments.seeds_at_once.value_or(0);
  request.quiet = global.quiet;
  request.program_version = GAINLENS_VERSION;
  request.options = arguments.data.policy.options();
  request.data_name = arguments.data.name();
  request.spread = parse_spread(arguments.spread);
  const runfile::ProcessGroup group = runfile::read_process_group();
  CHECK(
      group.size == 1 || request.spread == recommend::Spread::seeds || request.seeds_at_once <= 1,
      "--seeds-at-once: {} processes train one seed after the other; use --spread seeds to train several side by side",
      group.size);
  const data::LeaveOneOut split(arguments.data.read());
  const ScopedInterruption told(arguments.out, finished_trainings, group.rank == 0);
  const auto replicas = training::connect_replicas(group, process_environment());
  if (replicas->leads()) arguments.data.tell_left_out(split.interactions());
  const recommend::RecommendOutcome outcome = recommend::train_recommend(request, split, *replicas);
  if (!replicas->leads()) return;
  if (!own_settings.empty())
    print_notice("gainlens: --grid: {}: the run's own settings, which are the reference and no variant\n",
                 fmt::join(own_settings, ", "));
  print(outcome, arguments, split.items(), global.json);
}

/// The settings of every backbone. A key that several backbones have is the same option.
std::vector<Knob<recommend::Settings>> all_knobs() {
  std::vector<Knob<recommend::Settings>> all;
  for (const recommend::BackboneKind& backbone : recommend::backbones()) {
    for (const Knob<recommend::Settings>& knob : recommend::knobs(backbone)) {
      if (std::ranges::none_of(all, [&](const auto& other) { return other.key == knob.key; })) all.push_back(knob);
    }
  }
  return all;
}

/// The settings of every backbone without options: those of the first preset.
OrderedJson default_settings() {
  OrderedJson all = OrderedJson::object();
  for (const recommend::BackboneKind& backbone : recommend::backbones()) {
    const Json changes = recommend::preset(recommend::presets().front().name, backbone);
    const OrderedJson own = recommend::to_json(recommend::settings_of(changes, "preset", backbone));
    for (const auto& [key, value] : own.items())
      if (!all.contains(key)) all[key] = value;  // the first backbone's, as in all_knobs()
  }
  return all;
}

std::string knob_help() {
  std::string text =
      "A training may be killed at any moment. The same command called again continues and ends with the same "
      "numbers.\n"
      "More seeds or arms may be asked for in the same folder.\n"
      "A file for --config is a JSON object with any of these keys, which are options too (--learning-rate 1e-3):\n";
  const OrderedJson defaults = default_settings();
  for (const Knob<recommend::Settings>& knob : all_knobs())
    text += fmt::format("  {:<23} {} (default {})\n", knob.key, knob.help, defaults.at(knob.key).dump());
  text += "Arms:\n";
  for (const recommend::ArmParts& arm : recommend::all_arms()) text += fmt::format("  {:<16} {}\n", arm.name, arm.help);
  return text +
         "  popularity       baseline without training: how often an item was taken\n"
         "  markov           baseline without training: how often an item follows the last one\n"
         "torchrun --nproc-per-node 4 gainlens train recommend ... trains with 4 processes.\n"
         "Options go before --config, --config before --preset. OUT/ARM/seed-N holds the checkpoint of the epoch with\n"
         "the best validation NDCG@10, and result.safetensors with the curves and the rank of every user.";
}

/// "NAME: what it is; ..." of things that have a name and a help.
template <typename Named>
std::string helps_of(const std::vector<Named>& all) {
  std::string text;
  for (const Named& one : all) text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", one.name, one.help);
  return text;
}

}  // namespace

void add_train_recommend(CLI::App& train, const GlobalOptions& global, Action& action) {
  CLI::App* command = add_subcommand(
      train, {"recommend", "Train sequential recommenders with several seeds, and rank the whole catalogue with each"},
      "gainlens train recommend --data ratings.dat --seeds 5 --out run", knob_help());
  auto arguments = std::make_shared<TrainRecommendArguments>();
  add_interaction_options(*command, arguments->data);
  command->add_option("--backbone", arguments->backbone, helps_of(recommend::backbones()))->capture_default_str();
  add_name_list(*command, "--arm", arguments->arms,
                "What to train: plain, bft, or another arm, see below; several with commas");
  command->add_option("--seeds", arguments->seeds, "Number of seeds: --seed, --seed + 1, ...")->capture_default_str();
  command->add_option("--seeds-at-once", arguments->seeds_at_once,
                      "Trainings side by side, which share the threads (default: one for each thread)");
  add_spread_option(*command, arguments->spread);
  command
      ->add_option("--variant", arguments->variants,
                   "NAME:key=value,key=value: a named set of settings; each arm is trained with each variant in "
                   "OUT/ARM/NAME. May be given several times")
      ->allow_extra_args(false)
      ->type_name("NAME:key=value");
  command
      ->add_option("--grid", arguments->grid,
                   "KEY=V,V,...: each arm is trained with each of these values of one setting, in OUT/ARM/KEY-V, and\n"
                   "with the run's own settings, the reference; or paper: the seven knobs of the paper. May be given\n"
                   "several times. gainlens sensitivity reads the run")
      ->allow_extra_args(false)
      ->type_name("KEY=V,V");
  std::string preset_help = helps_of(recommend::presets());
  for (const recommend::BackboneKind& backbone : recommend::backbones()) {
    if (!backbone.presets.empty()) preset_help += "; " + helps_of(backbone.presets);
  }
  command->add_option("--preset", arguments->preset, "Settings to begin with: " + preset_help)->capture_default_str();
  command->add_option("--config", arguments->config, "JSON file with settings, see below");
  command->add_option("--out", arguments->out, "Run folder to write; the same request continues in it")->required();
  const auto filter_knobs = bft::filter_knobs();
  for (const Knob<recommend::Settings>& knob : all_knobs()) {
    const bool is_filter_knob =
        std::any_of(filter_knobs.begin(), filter_knobs.end(),
                    [&](const Knob<bft::FilterOptions>& other) { return other.key == knob.key; });
    command->add_option(knob_option(knob.key), arguments->knobs[knob.key], knob.help)
        ->group(is_filter_knob ? "Settings of the filter" : "Settings");
  }
  add_no_jacobian(*command, arguments->no_jacobian, "Settings of the filter");
  command->add_flag("--no-time-bias", arguments->no_time_bias, "The same as --time-bias false: for data without times")
      ->group("Settings");
  set_action(*command, action, [arguments, &global] {
    read_no_jacobian(arguments->no_jacobian, arguments->knobs);
    read_short_form(arguments->no_time_bias, "--no-time-bias", "time_bias", "false", arguments->knobs);
    run(*arguments, global);
  });
}

}  // namespace gainlens::cli
