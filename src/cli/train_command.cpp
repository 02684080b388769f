#include "cli/commands.h"

#include "core/console.h"
#include "core/error.h"
#include "core/json.h"
#include "language/train_language_model.h"
#include "reports/loss_curve_figure.h"

#include <memory>

namespace gainlens::cli {
namespace {

struct TrainLanguageModelArguments {
  std::string config;
  std::vector<std::string> texts;
  std::string out;
};

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
                         {"loss_curve", curve}};
    print_result("{}\n", result.dump());
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

void run(const TrainLanguageModelArguments& arguments, const GlobalOptions& global) {
  language::LanguageModelRequest request;
  request.recipe = arguments.config;
  request.texts.assign(arguments.texts.begin(), arguments.texts.end());
  request.out = arguments.out;
  request.seed = global.seed;
  request.quiet = global.quiet;
  const auto outcome = language::train_language_model(request);
  draw(outcome);
  print(outcome, global.json);
}

}  // namespace

void add_train(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* train = add_subcommand(app, "train", "Train a model from scratch", "gainlens train language-model --help");
  train->require_subcommand(1);
  CLI::App* command =
      add_subcommand(*train, "language-model",
                     "Train a small decoder and its SentencePiece vocabulary from text; leaves a checkpoint in Hugging "
                     "Face layout. Killed at any moment "
                     "and "
                     "called again it goes on from its last state and ends with the same weights",
                     "gainlens train language-model --config data/demo/gated.json --text a.txt b.txt.gz --out my-model",
                     "The recipe is JSON: `model` as in config.json without vocab_size, `tokenizer` {vocabulary, "
                     "algorithm, character_coverage}, "
                     "`stages`\n"
                     "[{context, steps}], tokens_per_step, tokens_at_once, learning_rate, schedule (cosine, constant), "
                     "warmup_steps, final_factor, beta1, "
                     "beta2,\n"
                     "epsilon, weight_decay, max_gradient_norm (0: none), validation_fraction, validation_tokens, "
                     "evaluate_every, save_every, patience "
                     "(0: never\n"
                     "stops early), dtype of the stored weights. Losses are in nats per token. The checkpoint is that "
                     "of the best held-out loss;\n"
                     "OUT/training holds the request, the state to go on from, history.csv and the loss curve. --seed "
                     "draws weights and order; the bits\n"
                     "depend on --threads too.");
  auto arguments = std::make_shared<TrainLanguageModelArguments>();
  command
      ->add_option("--config", arguments->config,
                   "Recipe (JSON): model as in config.json, tokenizer, stages, optimiser")
      ->required();
  command->add_option("--text", arguments->texts, "UTF-8 texts, plain or gzipped; the end of each is held out")
      ->required();
  command->add_option("--out", arguments->out, "Checkpoint folder to make")->required();
  command->callback([arguments, &global, &action] { action = [arguments, &global] { run(*arguments, global); }; });
}

}  // namespace gainlens::cli
