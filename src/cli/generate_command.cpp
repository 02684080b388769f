#include "cli/application.h"

#include "cli/command_options.h"
#include "cli/given_run.h"
#include "cli/model_options.h"
#include "core/check.h"
#include "core/checked.h"
#include "core/console.h"
#include "core/counted.h"
#include "core/json.h"
#include "core/listener.h"
#include "generation/generate.h"
#include "look/look_at_prompt.h"
#include "models/checkpoint/end_tokens.h"
#include "reports/terminal/generation_terminal.h"
#include "tokenizers/growing_text.h"

#include <fmt/ranges.h>

#include <memory>
#include <optional>

namespace gainlens::cli {
namespace {

struct GenerateArguments : ModelArguments {
  TextOptions text;
  std::optional<std::string> prompt;
  std::optional<std::int64_t> max_new;
  bool greedy = false;
  std::optional<double> temperature, top_p;
  bool ignore_eos = false;
  bool statistics = false;
};

sweep::TokenSourceOptions prompt_source(const GenerateArguments& arguments) {
  sweep::TokenSourceOptions source = arguments.text.source();
  source.prompt = arguments.prompt;
  CHECK(source.prompt || !source.text.empty() || !source.token_ids.empty(),
        "there is no prompt; give --prompt '..', --text FILE or --tokens FILE.json");
  return source;
}

generation::GenerationOptions options_of(const GenerateArguments& arguments, const GlobalOptions& global) {
  CHECK(arguments.max_new, "--max-new: is missing; give the most tokens that are to be added");
  const bool draws = arguments.temperature || arguments.top_p;
  CHECK(!draws || !arguments.greedy, "--greedy: takes the most likely token, and {} draws one; give one of the two",
        arguments.temperature ? "--temperature" : "--top-p");
  generation::GenerationOptions options;
  options.max_new = *arguments.max_new;
  options.seed = global.seed;
  options.allow_extrapolation = arguments.allow_extrapolation;
  options.statistics = arguments.statistics;
  if (draws) options.sampling = {arguments.temperature.value_or(1), arguments.top_p.value_or(1)};
  return options;
}

/// What the program says of how a text can end.
void tell_of_ends(const models::EndTokens& ends, bool ignored, std::int64_t vocabulary) {
  if (!ends.outside.empty())
    tell_note("eos_token_id names {}, and the vocabulary has {} ids, from 0: it ends no text",
              fmt::join(ends.outside, ", "), vocabulary);
  if (ends.ids.empty()) {
    tell_note("the checkpoint names no token of its vocabulary that ends a text: --max-new alone ends it");
    return;
  }
  const std::string names = fmt::format("{}", fmt::join(ends.ids, ", "));
  tell_note("{} ({}) {}", ends.ids.size() == 1 ? "token " + names : "any of the tokens " + names, ends.source,
            ignored ? "does not end the text (--ignore-eos)" : "would end the text");
}

double per_second(std::int64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

void tell_of_time(const generation::Generated& generated) {
  const auto tokens = [](std::int64_t count) { return counted(count, "token"); };
  std::string steps = "no further token";
  if (generated.step_tokens > 0)
    steps = fmt::format("then {} in {:.2f} s: {:.1f} tokens per second", tokens(generated.step_tokens),
                        generated.step_seconds, per_second(generated.step_tokens, generated.step_seconds));
  tell_note("the prompt of {} and the first new token in {:.2f} s, {}", tokens(generated.prompt_tokens),
            generated.prompt_seconds, steps);
}

/// The line for programs (docs/generate.md).
void print_json(const generation::Continued& found, bool statistics) {
  std::string line = json_text(OrderedJson{{"tokens", found.tokens}, {"logprobs", found.log_probabilities}});
  if (statistics) {
    line.pop_back();
    line += ",\"statistics\":" + reports::token_statistics_json(found.heads) + '}';
  }
  write_result(line + "\n");
}

void print_statistics(const generation::Continued& found, const tokenizers::Tokenizer* tokenizer) {
  std::vector<reports::AddedToken> tokens;
  for (std::size_t i = 0; i < found.tokens.size(); ++i) {
    const tokenizers::TokenId id = found.tokens[i];
    tokens.push_back(
        {tokenizer != nullptr ? tokenizer->token_text(id) : std::to_string(id), found.log_probabilities[i]});
  }
  write_result("\n" + reports::print_token_statistics(tokens, found.heads));
}

/// Prints the text that is added, or its ids, while it grows.
class PrintedText {
 public:
  explicit PrintedText(const tokenizers::Tokenizer* tokenizer) {
    if (tokenizer != nullptr) text_.emplace(*tokenizer);
  }
  void add(tokenizers::TokenId id) {
    write(text_ ? text_->add(id) : fmt::format("{}{}", began_ ? " " : "", id));
    began_ = true;
  }
  /// Ends the line. Does nothing before the first token.
  void finish() {
    if (began_) write((text_ ? text_->finish() : std::string()) + "\n");
  }

 private:
  static void write(const std::string& text) {
    write_result(text);
    flush_results();  // a person reads along
  }

  std::optional<tokenizers::GrowingText> text_;
  bool began_ = false;
};

generation::Generated printed(models::Decoder& model, const look::Prompt& prompt,
                              const generation::GenerationOptions& options) {
  PrintedText text(prompt.tokenizer.get());
  const std::vector<std::vector<tokenizers::TokenId>> prompts = {prompt.tokens};
  try {
    generation::Generated generated =
        generation::generate(model, prompts, options, [&text](std::size_t, tokenizers::TokenId id) { text.add(id); });
    text.finish();
    return generated;
  } catch (const RunFailed&) {
    text.finish();  // the message begins a line
    throw;
  }
}

void generate(const GenerateArguments& arguments, const GlobalOptions& global) {
  generation::GenerationOptions options = options_of(arguments, global);
  const sweep::TokenSourceOptions from = prompt_source(arguments);
  const models::LoadOptions load = arguments.load_options(global);
  const std::filesystem::path path = locate_language_model(arguments.model, "generate");
  const models::CheckpointSource checkpoint = models::open_checkpoint(path, arguments.ignored_config_keys);
  const look::Prompt prompt = look::read_prompt(from, checkpoint.config, checkpoint.path);
  const std::vector<std::vector<tokenizers::TokenId>> prompts = {prompt.tokens};
  const models::EndTokens ends = models::end_tokens(checkpoint);
  if (!arguments.ignore_eos) {
    for (const std::int64_t id : ends.ids)
      options.ends.push_back(checked_cast<tokenizers::TokenId>(id, "eos_token_id"));
  }
  generation::check_can_generate(checkpoint.config, prompts, options);
  CHECK(!arguments.statistics || checkpoint.config.attention_layers(checkpoint.config.layers) > 0,
        "--statistics: the model has no softmax attention, and so no heads");
  if (prompt.without_line_end && !global.quiet)
    tell_note("the prompt ends in a line end, which is a part of its tokens (printf '%s' writes none)");
  for (const std::string& note : checkpoint.notes) tell_warning("{}", note);
  if (!global.quiet) tell_of_ends(ends, arguments.ignore_eos, checkpoint.config.vocabulary);
  const auto model = models::load_own_decoder(checkpoint.path, load);
  const generation::Generated generated =
      global.json ? generation::generate(*model, prompts, options) : printed(*model, prompt, options);
  const generation::Continued& found = generated.continued[0];
  if (global.json) {
    print_json(found, arguments.statistics);
  } else if (arguments.statistics) {
    print_statistics(found, prompt.tokenizer.get());
  }
  if (!global.quiet) tell_of_time(generated);
}

}  // namespace

void add_generate(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* command = add_subcommand(
      app, subcommand_named("generate"), "gainlens generate MODEL --prompt 'The capital of France is' --max-new 20",
      "Continues a prompt token by token, from a cache of keys and values. Prints the text that is added, or its ids "
      "if\n"
      "--tokens was given; with --json one line {\"tokens\": [..], \"logprobs\": [..]}: the new ids, and ln p of each "
      "under\n"
      "the model itself. The prompt is taken as it is: no chat template is applied. docs/generate.md has more.");
  auto arguments = std::make_shared<GenerateArguments>();
  add_model_option(*command, arguments->model);
  command->add_option("--prompt", arguments->prompt, "The prompt itself");
  add_text_options(*command, arguments->text);
  command->add_option("--max-new", arguments->max_new, "Most tokens that are added (required)");
  command->add_flag("--greedy", arguments->greedy,
                    "Take the most likely token each time, the first of equal ones. So it is if neither --temperature "
                    "nor --top-p is given");
  command->add_option("--temperature", arguments->temperature,
                      "Draw each token at random (with --seed), from logits divided by this number");
  command->add_option("--top-p", arguments->top_p,
                      "Draw from the fewest most likely tokens that have at least this share of the probability");
  command->add_flag("--ignore-eos", arguments->ignore_eos,
                    "Go on after a token that ends a text (eos_token_id of the checkpoint)");
  add_dtype_option(*command, arguments->dtype);
  command->add_flag("--stream-weights", arguments->stream_weights,
                    "For models larger than memory: read each layer from the files for every token. The numbers are "
                    "the same");
  command->add_flag("--allow-extrapolation", arguments->allow_extrapolation,
                    "Allow more tokens than the model's number of positions");
  command->add_flag("--statistics", arguments->statistics,
                    "Also n_eff, K, entropy and BOS mass of every head, of the query that each new token comes from "
                    "(docs/generate.md)");
  add_ignored_keys(*command, arguments->ignored_config_keys);
  set_action(*command, action, [command, arguments, &global] {
    CHECK(arguments->temperature || arguments->top_p || command->get_parent()->count("--seed") == 0,
          "--seed: nothing is drawn at random; give --temperature or --top-p, or leave it out");
    generate(*arguments, global);
  });
}

}  // namespace gainlens::cli
