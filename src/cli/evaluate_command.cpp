#include "cli/application.h"

#include "cli/command_options.h"
#include "cli/given_run.h"
#include "cli/model_options.h"
#include "cli/training_options.h"
#include "core/check.h"
#include "core/console.h"
#include "core/counted.h"
#include "core/json.h"
#include "core/quantity.h"
#include "experiment/proven_run.h"
#include "language/evaluate_language_model.h"
#include "models/checkpoint/torch_dtype.h"
#include "sweep/token_source.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gainlens::cli {
namespace {

struct EvaluateLanguageModelArguments : ModelArguments {
  TextOptions text;
  std::string length;
};

/// The loss of one checkpoint, and how it was measured.
struct MeasuredLoss {
  language::LanguageModelLoss loss;
  std::int64_t context = 0;
  std::string bos;

  double below() const { return 1 - loss.loss / loss.unigram_entropy; }
};

Json to_json(const MeasuredLoss& found) {
  const language::LanguageModelLoss& loss = found.loss;
  return {{"tokens", loss.tokens},
          {"predicted", loss.predicted},
          {"chunks", loss.chunks},
          {"context", found.context},
          {"loss", loss.loss},
          {"unigram_entropy", loss.unigram_entropy},
          {"standard_error", std::isnan(loss.standard_error) ? Json(nullptr) : Json(loss.standard_error)},
          {"below_unigram", found.below()},
          {"bos_policy", found.bos}};
}

void print_tokens(const MeasuredLoss& found) {
  print_result("tokens             {} in {} of at most {}; {}\n", found.loss.tokens,
               counted(found.loss.chunks, "chunk"), found.context, found.bos);
}

void print(const MeasuredLoss& found, bool json) {
  if (json) {
    print_result("{}\n", json_text(to_json(found)));
    return;
  }
  print_tokens(found);
  print_result("loss               {:.4f} nats per token (perplexity {:.2f})\n", found.loss.loss,
               std::exp(found.loss.loss));
  print_result("unigram entropy    {:.4f} nats per token\n", found.loss.unigram_entropy);
  print_result("{} it by        {:.1f}%\n", found.below() < 0 ? "above" : "below", 100 * std::abs(found.below()));
}

MeasuredLoss measured_loss(const std::filesystem::path& path, const EvaluateLanguageModelArguments& arguments,
                           const GlobalOptions& global) {
  std::optional<std::int64_t> length;
  if (!arguments.length.empty())
    length = parse_count(arguments.length, "--length", {2, "to predict one token from another"});
  const at::ScalarType dtype = models::parse_dtype(arguments.dtype, "--dtype");
  OpenedModel opened = open_model(path, arguments.ignored_config_keys);
  CHECK(opened.decoder.has_value(), "{}: is a recommender; use gainlens evaluate recommend", printable(path.string()));
  for (const std::string& note : opened.decoder->notes) print_notice("gainlens: warning: {}\n", note);
  const models::DecoderConfig config = opened.decoder->config;
  CHECK(!length || *length <= config.max_positions, "--length: {} exceeds the model's {} positions; give a smaller one",
        *length, config.max_positions);
  const auto model = opened.load(dtype, at::kCPU);
  const auto source =
      sweep::read_tokens(arguments.text.source(), opened.decoder->path, config.vocabulary, config.bos_token);
  if (source.one_line && !global.quiet) sweep::tell_of_line_end(source);
  const std::int64_t context = length.value_or(std::min<std::int64_t>(config.max_positions, 2048));
  return {language::evaluate_language_model(*model, source.tokens, source.bos.token, context, global.quiet), context,
          source.bos.explanation};
}

/// Every finished training of a run: the mean loss of each arm over its seeds.
void evaluate_run(const EvaluateLanguageModelArguments& arguments, const GlobalOptions& global) {
  const std::filesystem::path path = arguments.model;
  CHECK(std::filesystem::is_directory(path), "{}: is a file; give the folder of the run, in which the models are",
        printable(arguments.model));
  const auto proven = prove_experiment_run(path);
  const runfile::ExperimentRun& run = *proven.run;
  tell_unproven(path, proven.unproven);
  OrderedJson trainings = OrderedJson::array();
  std::optional<MeasuredLoss> last;
  if (!global.json) print_result("{:<20} {:>5}  {}\n", "arm", "seeds", "nats per token");
  for (std::size_t arm = 0; arm < run.arms.size(); ++arm) {
    std::vector<double> losses;
    for (std::size_t seed = 0; seed < run.seeds.size(); ++seed) {
      if (!run.result(arm, seed)) continue;
      const auto folder = experiment::folder_of_training(path, run.arms[arm], run.seeds[seed]);
      CHECK(!folder.empty() && std::filesystem::is_directory(folder), "{}: {}, seed {} has no folder; put it back",
            printable(path.string()), printable(run.arms[arm], 60), run.seeds[seed]);
      last = measured_loss(folder, arguments, global);
      losses.push_back(last->loss.loss);
      OrderedJson one = {{"arm", run.arms[arm]}, {"seed", run.seeds[seed]}};
      one.update(OrderedJson(to_json(*last)));
      trainings.push_back(std::move(one));
    }
    if (!global.json && !losses.empty())
      print_result("{:<20} {:>5}  {}\n", printable(run.arms[arm], 60), losses.size(), mean_and_deviation(losses));
  }
  CHECK(last, "{}: no training is finished; repeat its gainlens train command, which continues",
        printable(path.string()));
  if (global.json) {
    print_result("{}\n", json_text({{"run", arguments.model}, {"trainings", std::move(trainings)}}));
    return;
  }
  print_tokens(*last);
  print_result("unigram entropy    {:.4f} nats per token\n", last->loss.unigram_entropy);
}

void run(const EvaluateLanguageModelArguments& arguments, const GlobalOptions& global) {
  if (is_experiment_run(arguments.model)) {
    evaluate_run(arguments, global);
  } else {
    print(measured_loss(arguments.model, arguments, global), global.json);
  }
}

}  // namespace

void add_evaluate(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* evaluate = add_subcommand(app, subcommand_named("evaluate"), "gainlens evaluate language-model --help");
  evaluate->require_subcommand(1);
  add_evaluate_recommend(*evaluate, global, action);
  CLI::App* command = add_subcommand(
      *evaluate,
      {"language-model",
       "Measure the loss of a checkpoint over a whole text, cut into consecutive chunks, and the text's unigram "
       "entropy"},
      "gainlens evaluate language-model MODEL --text wiki.txt --length 2k",
      "Losses are in nats per token. The unigram entropy is the entropy of the text's own token frequencies: the\n"
      "smallest loss that is possible without context. MODEL can be the run of train language-model with several arms "
      "or\n"
      "seeds, or of train finetune: then each training is measured, and the mean and deviation over seeds are shown.");
  auto arguments = std::make_shared<EvaluateLanguageModelArguments>();
  add_model_option(*command, arguments->model);
  add_text_options(*command, arguments->text);
  command->add_option(
      "--length", arguments->length,
      "Length of a chunk in tokens, BOS included; 1k is 1024 (default: the model's number of positions, at most 2048)");
  add_dtype_option(*command, arguments->dtype);
  add_ignored_keys(*command, arguments->ignored_config_keys);
  set_action(*command, action, [arguments, &global] { run(*arguments, global); });
}

}  // namespace gainlens::cli
