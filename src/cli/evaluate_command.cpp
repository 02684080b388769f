#include "cli/commands.h"

#include "cli/ignored_keys.h"
#include "cli/open_model.h"
#include "cli/text_options.h"
#include "core/check.h"
#include "core/console.h"
#include "core/counted.h"
#include "core/json.h"
#include "core/quantity.h"
#include "language/evaluate_language_model.h"
#include "models/checkpoint/torch_dtype.h"
#include "sweep/token_source.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

namespace gainlens::cli {
namespace {

struct EvaluateLanguageModelArguments {
  std::string model;
  std::vector<std::string> ignored_config_keys;
  TextOptions text;
  std::string length;
  std::string dtype = "float32";
};

void print(const language::LanguageModelLoss& loss, std::int64_t context, const std::string& bos, bool json) {
  const double below = 1 - loss.loss / loss.unigram_entropy;
  if (json) {
    const Json result = {
        {"tokens", loss.tokens},
        {"predicted", loss.predicted},
        {"chunks", loss.chunks},
        {"context", context},
        {"loss", loss.loss},
        {"unigram_entropy", loss.unigram_entropy},
        {"standard_error", std::isnan(loss.standard_error) ? Json(nullptr) : Json(loss.standard_error)},
        {"below_unigram", below},
        {"bos_policy", bos}};
    print_result("{}\n", json_text(result));
    return;
  }
  print_result("tokens             {} in {} of at most {}; {}\n", loss.tokens, counted(loss.chunks, "chunk"), context,
               bos);
  print_result("loss               {:.4f} nats per token (perplexity {:.2f})\n", loss.loss, std::exp(loss.loss));
  print_result("unigram entropy    {:.4f} nats per token\n", loss.unigram_entropy);
  print_result("{} it by        {:.1f}%\n", below < 0 ? "above" : "below", 100 * std::abs(below));
}

void run(const EvaluateLanguageModelArguments& arguments, const GlobalOptions& global) {
  std::optional<std::int64_t> length;
  if (!arguments.length.empty())
    length = parse_count(arguments.length, "--length", {2, "to predict one token from another"});
  const at::ScalarType dtype = models::parse_dtype(arguments.dtype, "--dtype");
  OpenedModel opened = open_model(arguments.model, arguments.ignored_config_keys);
  CHECK(opened.decoder.has_value(), "{}: is a recommender; use gainlens evaluate recommend",
        printable(arguments.model));
  for (const std::string& note : opened.decoder->notes) print_notice("gainlens: warning: {}\n", note);
  const models::DecoderConfig config = opened.decoder->config;
  CHECK(!length || *length <= config.max_positions, "--length: {} exceeds the model's {} positions; give a smaller one",
        *length, config.max_positions);
  const auto model = opened.load(dtype, at::kCPU);
  const auto source =
      sweep::read_tokens(arguments.text.source(), opened.decoder->path, config.vocabulary, config.bos_token);
  if (source.one_line && !global.quiet) sweep::tell_of_line_end(source);
  const std::int64_t context = length.value_or(std::min<std::int64_t>(config.max_positions, 2048));
  print(language::evaluate_language_model(*model, source.tokens, source.bos.token, context, global.quiet), context,
        source.bos.explanation, global.json);
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
      "smallest loss that is possible without context.");
  auto arguments = std::make_shared<EvaluateLanguageModelArguments>();
  add_model_option(*command, arguments->model);
  add_text_options(*command, arguments->text);
  command->add_option(
      "--length", arguments->length,
      "Length of a chunk in tokens, BOS included; 1k is 1024 (default: the model's number of positions, at most 2048)");
  add_dtype_option(*command, arguments->dtype);
  add_ignored_keys(*command, arguments->ignored_config_keys);
  command->callback([arguments, &global, &action] { action = [arguments, &global] { run(*arguments, global); }; });
}

}  // namespace gainlens::cli
