#include "cli/application.h"

#include "analyses/checks/training_checks.h"
#include "cli/command_options.h"
#include "cli/given_run.h"
#include "cli/interruption.h"
#include "cli/run_kinds.h"
#include "cli/training_options.h"
#include "core/check.h"
#include "core/console.h"
#include "core/error.h"
#include "core/json.h"
#include "language/language_experiment.h"
#include "language/recipe.h"
#include "language/train_language_model.h"
#include "models/checkpoint/torch_dtype.h"
#include "models/decoder/filter_config.h"
#include "reports/training/language_report.h"
#include "runfile/process_group.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gainlens::cli {
namespace {

constexpr const char* filter_group = "Options of the filter (--arm bft)";

struct TrainLanguageModelArguments {
  std::string config;
  std::vector<std::string> texts;
  std::string out;
  std::vector<std::string> arms = {"plain"};
  std::int64_t seeds = 1;
  std::map<std::string, std::string> knobs;  // of the filter, as given on the command line
  bool no_jacobian = false;
  std::string precision_learning_rate;
  bool keep_checkpoints = false;
};

/// Refuses options of the filter that change nothing beside the others.
void check_idle_options(const TrainLanguageModelArguments& arguments, const bft::Filter& filter) {
  std::optional<std::int64_t> layers;
  for (const auto& [key, text] : arguments.knobs) {
    if (text.empty()) continue;
    if (!layers) layers = language::layers_of(language::read_recipe(arguments.config), printable(arguments.config));
    const std::string reason = bft::why_idle(filter, key, *layers);
    CHECK(reason.empty(), "{}: has no effect, because {}", filter_option(key, arguments.no_jacobian), reason);
  }
}

/// Reads the arms and the options of the filter. Of several arms the request gets the filter of bft.
/// @throws InvalidArgument  no such arm; an option of the filter is wrong, or is given for arms that do not read it
void read_arms(const TrainLanguageModelArguments& arguments, language::LanguageModelRequest& request) {
  std::vector<bft::Arm> arms;
  for (const std::string& name : arguments.arms) arms.push_back(models::decoder_arm(name, "--arm"));
  // The controls have parts of the filter with their defaults.
  const bool has_filter = std::ranges::find(arms, bft::Arm::bft) != arms.end();
  const bft::Arm arm = has_filter ? bft::Arm::bft : arms.front();
  bft::FilterOptions filter = models::default_decoder_filter();
  std::string given;  // for messages
  for (const Knob<bft::FilterOptions>& knob : bft::filter_knobs()) {
    const std::string& text = arguments.knobs.at(knob.key);
    if (text.empty()) continue;
    CHECK(has_filter, "{}: is an option of the filter; give --arm bft too",
          filter_option(knob.key, arguments.no_jacobian));
    knob.set(filter, knob_value(text), knob_option(knob.key));
    given += fmt::format("{}{} {}", given.empty() ? "" : " ", knob_option(knob.key), printable(text, 60));
  }
  if (!given.empty()) models::check_filter_options(filter, given);
  check_idle_options(arguments, {arm, filter});
  if (!arguments.precision_learning_rate.empty()) {
    CHECK(has_filter, "--precision-learning-rate: is an option of the filter; give --arm bft too");
    const Json factor = knob_value(arguments.precision_learning_rate);
    CHECK(factor.is_number(), "--precision-learning-rate: '{}'; must be a number",
          printable(arguments.precision_learning_rate, 60));
    request.precision_learning_rate = factor.get<double>();
  }
  if (arm != bft::Arm::plain) request.filter = filter;
  request.filter_arm = arm == bft::Arm::plain ? bft::Arm::bft : arm;
}

std::vector<std::string> draw(const language::LanguageModelOutcome& outcome) {
  std::vector<reports::LossCurvePoint> points;
  for (const training::Evaluation& point : outcome.training.history) {
    points.push_back({point.step, point.training_loss, point.validation_loss});
  }
  return reports::render(reports::loss_curve_figure(points, outcome.training.best_step), outcome.folder / "training");
}

void print(const language::LanguageModelOutcome& outcome, bool json) {
  const training::TrainingOutcome& training = outcome.training;
  const std::string curve = (outcome.folder / "training" / "loss-curve.svg").string();
  if (!outcome.diverged.empty())
    print_notice("gainlens: warning: the training has diverged: {}; a smaller 'learning_rate' may help\n",
                 outcome.diverged);
  if (json) {
    const Json result = {{"checkpoint", outcome.folder.string()},
                         {"parameters", outcome.parameters},
                         {"training_tokens", outcome.training_tokens},
                         {"validation_tokens", outcome.validation_tokens},
                         {"steps", training.steps},
                         {"resumed_at", training.resumed_at},
                         {"stopped_early", training.stopped_early},
                         {"best_step", training.best_step},
                         {"best_validation_loss", training.best_loss},
                         {"diverged", outcome.diverged.empty() ? Json() : Json(outcome.diverged)},
                         {"loss_curve", curve}};
    print_result("{}\n", json_text(result));
    return;
  }
  if (training.resumed_at == training.steps) {
    print_result("{}: complete, nothing to do ({} steps)\n", outcome.folder.string(), training.steps);
  } else {
    print_result("{}: {} steps{}{}\n", outcome.folder.string(), training.steps,
                 training.resumed_at > 0 ? fmt::format(", {} of them done before", training.resumed_at) : "",
                 training.stopped_early ? ", stopped early" : "");
  }
  print_result("{:.3f} million parameters, {} training tokens, {} held out\n",
               static_cast<double>(outcome.parameters) * 1e-6, outcome.training_tokens, outcome.validation_tokens);
  print_result("best held-out loss {:.4f} nats per token, at step {}; its curve: {}\n", training.best_loss,
               training.best_step, curve);
}

/// Whether the folder becomes, or is, a run of several trainings. One arm with one seed has a folder without them.
bool is_experiment(const TrainLanguageModelArguments& arguments) {
  return arguments.arms.size() > 1 || arguments.seeds != 1 || is_experiment_run(arguments.out);
}

constexpr TrainedMetric trained_metrics[] = {{"loss", "held-out loss"}};

void run_experiment(const TrainLanguageModelArguments& arguments, language::LanguageModelRequest model,
                    const GlobalOptions& global) {
  language::LanguageExperimentRequest request;
  request.model = std::move(model);
  request.arms = arguments.arms;
  request.seeds = arguments.seeds;
  request.threads = global.threads > 0 ? global.threads : at::get_num_threads();
  request.program_version = GAINLENS_VERSION;
  experiment::check_seeds(global.seed, arguments.seeds);
  check_can_be_run_folder(arguments.out);
  CHECK(runfile::read_process_group().size == 1,
        "train language-model: several processes do not share it; start one process");
  const ScopedInterruption told(arguments.out, finished_trainings);
  print_trainings(language::train_language_models(request), {trained_metrics, "sequence", arguments.out}, global.json);
}

void run(const TrainLanguageModelArguments& arguments, const GlobalOptions& global) {
  language::LanguageModelRequest request;
  request.recipe = arguments.config;
  request.texts.assign(arguments.texts.begin(), arguments.texts.end());
  request.out = arguments.out;
  request.seed = global.seed;
  request.keep_checkpoints = arguments.keep_checkpoints;
  request.quiet = global.quiet;
  read_arms(arguments, request);
  if (is_experiment(arguments)) {
    run_experiment(arguments, std::move(request), global);
    return;
  }
  check_holds_no_run(arguments.out);
  const ScopedInterruption told(arguments.out, "its last saved state", true, training::state_file_in("training"));
  const auto outcome = language::train_language_model(request);
  draw(outcome);
  print(outcome, global.json);
}

/// The keys of a recipe with their defaults.
std::string recipe_help() {
  const language::Recipe recipe;
  const auto& [learning_rate, beta1, beta2, epsilon] = recipe.optimizer;
  std::string text =
      "A training may be killed at any moment. The same command called again continues from the last saved state and\n"
      "ends with the same weights.\n"
      "The recipe is a JSON object. model, stages and learning_rate are needed; the other keys have these defaults:\n";
  const auto add = [&text](std::string_view key, const std::string& meaning) {
    text += fmt::format("  {:<20} {}\n", key, meaning);
  };
  add("model", "as in config.json, without vocab_size, bos_token_id and eos_token_id");
  add("tokenizer",
      fmt::format("{{vocabulary: {}, algorithm: {} (or unigram), character_coverage: {}}}", recipe.tokenizer.vocabulary,
                  recipe.tokenizer.algorithm, recipe.tokenizer.character_coverage));
  add("stages", "[{context: tokens of a sequence, steps}, ...], one after the other");
  add("tokens_per_step", fmt::format("{}", recipe.tokens_per_step));
  add("tokens_at_once", fmt::format("{}, or the longest context if that is more", recipe.tokens_at_once));
  add("learning_rate", "at the peak of the schedule");
  add("schedule", "cosine (or constant)");
  add("warmup_steps", fmt::format("{}", recipe.schedule.warmup_steps));
  add("final_factor", fmt::format("{} of the peak, at the end of cosine", recipe.schedule.final_factor));
  add("beta1, beta2", fmt::format("{}, {}", beta1, beta2));
  add("epsilon", fmt::format("{}", epsilon));
  add("weight_decay", fmt::format("{}, of matrices", recipe.weight_decay));
  add("max_gradient_norm", fmt::format("{} (0: no clipping)", recipe.max_gradient_norm));
  add("validation_fraction", fmt::format("{} of each text, at its end", recipe.validation_fraction));
  add("validation_tokens", fmt::format("{} at most", recipe.validation_tokens));
  add("evaluate_every", fmt::format("{} steps", recipe.evaluate_every));
  add("save_every", fmt::format("{} steps", recipe.save_every));
  add("patience", fmt::format("{} evaluations (0: no early stopping)", recipe.patience));
  add("dtype", fmt::format("{}, of the stored weights", models::dtype_name(recipe.dtype)));
  return text +
         "Losses are in nats per token. The checkpoint holds the weights with the best held-out loss. OUT/training "
         "holds\nthe request, the saved state, history.csv and the loss curve. The initial weights and the order of "
         "the data\nfollow from --seed. The bits of the weights depend on --threads too.";
}

std::vector<analyses::CheckResult> check_language_training(const std::filesystem::path& path) {
  return analyses::run_checks(analyses::language_checks(), analyses::read_language_training(path));
}

void report_language_training(const ReportArguments& arguments, const GlobalOptions& global) {
  const std::filesystem::path out = folder_to_write(arguments), path = folder_of_run(arguments.runs.front());
  const reports::Writing writing = writing_of(arguments);
  const analyses::LanguageTraining training = analyses::read_language_training(path);
  finish_report(reports::write_language_report(training, path.filename().string(), out, writing), out, global.json);
}

}  // namespace

const RunCommands language_training_commands = {
    .kind = runfile::RunKind::language_training, .check = check_language_training, .report = report_language_training};

void add_train(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* train = add_subcommand(app, subcommand_named("train"), "gainlens train language-model --help");
  train->require_subcommand(1);
  add_train_recommend(*train, global, action);
  add_train_finetune(*train, global, action);
  CLI::App* command =
      add_subcommand(*train,
                     {"language-model",
                      "Train a small decoder and its SentencePiece vocabulary from text, and write a checkpoint in "
                      "Hugging Face layout"},
                     "gainlens train language-model --config data/demo/gated.json --text a.txt b.txt.gz --out my-model",
                     recipe_help());
  auto arguments = std::make_shared<TrainLanguageModelArguments>();
  command->add_option("--config", arguments->config, "File with the recipe, a JSON object (see below)")->required();
  command
      ->add_option("--text", arguments->texts, "Files with UTF-8 text, plain or gzipped; the end of each is held out")
      ->required();
  command->add_option("--out", arguments->out, "Checkpoint folder to write; the same request continues in it")
      ->required();
  add_name_list(
      *command, "--arm", arguments->arms,
      fmt::format("What to train: {}; bft is a Bayesian filter, and those after it have a part of it. Several "
                  "with commas",
                  fmt::join(models::decoder_arm_names(), ", ")));
  command
      ->add_option(
          "--seeds", arguments->seeds,
          "Number of seeds: --seed, --seed + 1, ... Several arms or seeds are trained into OUT/ARM/seed-N, and "
          "gainlens compare, report and check read OUT")
      ->capture_default_str();
  command->add_flag("--keep-checkpoints", arguments->keep_checkpoints,
                    "Also keep the weights of every evaluation, and those before training: OUT/checkpoints/step-N. "
                    "Sweep each, and `report --axis step` draws the numbers along the training");
  command
      ->add_option("--precision-learning-rate", arguments->precision_learning_rate,
                   fmt::format("Factor on the learning rate of the filter's parameters (default: {})",
                               language::LanguageModelRequest().precision_learning_rate))
      ->group(filter_group);
  const bft::FilterOptions defaults = models::default_decoder_filter();
  for (const Knob<bft::FilterOptions>& knob : bft::filter_knobs()) {
    command
        ->add_option(knob_option(knob.key), arguments->knobs[knob.key],
                     fmt::format("{} (default: {})", knob.help, knob.get(defaults).dump()))
        ->group(filter_group);
  }
  add_no_jacobian(*command, arguments->no_jacobian, filter_group);
  set_action(*command, action, [arguments, &global] {
    read_no_jacobian(arguments->no_jacobian, arguments->knobs);
    run(*arguments, global);
  });
}

}  // namespace gainlens::cli
