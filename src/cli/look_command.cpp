#include "cli/application.h"

#include "cli/command_options.h"
#include "cli/given_run.h"
#include "cli/model_options.h"
#include "core/atomic_file.h"
#include "core/check.h"
#include "core/console.h"
#include "core/json.h"
#include "core/listener.h"
#include "interventions/answer_tokens.h"
#include "interventions/arm_list.h"
#include "look/look_at_prompt.h"
#include "look/segments.h"
#include "models/checkpoint/checkpoint_source.h"
#include "reports/look/look_report.h"
#include "reports/terminal/look_terminal.h"

#include <memory>
#include <optional>
#include <utility>

namespace gainlens::cli {
namespace {

struct LookArguments : ModelArguments {
  TextOptions text;
  PromptOptions prompts;
  std::string segments, head, answer, foil;
  std::optional<std::int64_t> query;
  std::int64_t segment_queries = 1;
  std::int64_t top_keys = 8;
  std::optional<std::int64_t> next;
  bool lens = false;
  std::string out;
};

void check_numbers(const LookArguments& arguments, bool json) {
  CHECK(arguments.top_keys >= 1 && arguments.top_keys <= kernels::max_top_keys, "--top-keys: {}; must be 1 to {}",
        arguments.top_keys, kernels::max_top_keys);
  CHECK(arguments.next.value_or(1) >= 1, "--next: {}; must be at least 1", *arguments.next);
  CHECK(arguments.segment_queries >= 1, "--segment-queries: {}; must be at least 1", arguments.segment_queries);
  CHECK(!arguments.segments.empty() || arguments.segment_queries == 1, "--segment-queries: belongs to --segments");
  CHECK(arguments.segments.empty() || arguments.prompts.batch.empty(),
        "--segments: are of one prompt; leave --batch out");
  CHECK(arguments.foil.empty() || !arguments.answer.empty(), "--answer: is missing; --answer and --foil go together");
  CHECK(arguments.answer.empty() || !arguments.foil.empty() || arguments.lens,
        "--foil: is missing; --answer and --foil go together, or give --lens for the rank of the answer alone");
  CHECK(!json || !arguments.query || arguments.lens || !arguments.head.empty() || !arguments.out.empty(),
        "--query: --json has the numbers of every query; leave --query out, or give --head or --lens too");
}

/// The query whose numbers are shown: --query, or the last one.
std::int64_t query_of(const LookArguments& arguments, const look::Prompt& prompt) {
  const std::int64_t length = std::ssize(prompt.tokens), query = arguments.query.value_or(length - 1);
  CHECK(query >= 0 && query < length, "--query: position {}; the prompt has positions 0 to {}", query, length - 1);
  return query;
}

/// The lens reads every position, unless one is asked for or only one is printed.
look::LensOptions lens_of(const LookArguments& arguments, const look::Prompt& prompt,
                          const models::DecoderConfig& config, bool json) {
  look::LensOptions lens;
  if (arguments.query || (!json && arguments.out.empty())) lens.position = query_of(arguments, prompt);
  if (arguments.next) lens.next = *arguments.next;
  if (!arguments.answer.empty())
    lens.answer = interventions::token_of(arguments.answer, prompt.tokenizer.get(), config.vocabulary, "--answer");
  return lens;
}

look::LookOptions options_of(const LookArguments& arguments, const look::Prompt& prompt,
                             const models::DecoderConfig& config, bool json) {
  look::LookOptions options;
  options.top_keys = arguments.top_keys;
  if (arguments.next) options.next = *arguments.next;
  if (arguments.lens) options.lens = lens_of(arguments, prompt, config, json);
  if (!arguments.head.empty()) {
    const auto chosen = interventions::read_head(arguments.head);
    CHECK(chosen, "--head: '{}'; must be LAYER.HEAD, as 17.2", printable(arguments.head, 40));
    options.query = look::ChosenQuery{chosen->layer, chosen->head, query_of(arguments, prompt)};
  }
  if (!arguments.foil.empty())
    options.pair =
        interventions::answer_pair(arguments.answer, arguments.foil, prompt.tokenizer.get(), config.vocabulary);
  if (!arguments.segments.empty())
    options.segments = look::read_segments(arguments.segments, std::ssize(prompt.tokens));
  options.segment_queries = std::min<std::int64_t>(arguments.segment_queries, std::ssize(prompt.tokens));
  options.allow_extrapolation = arguments.allow_extrapolation;
  return options;
}

/// The folder of a prompt's page: --out, or with --batch a folder in it for each line.
std::filesystem::path page_folder(const LookArguments& arguments, std::size_t place) {
  const std::filesystem::path out = arguments.out;
  return arguments.prompts.batch.empty() ? out : out / fmt::format("prompt-{}", place + 1);
}

/// The name of its folder or file, for the page.
std::string model_name(const std::filesystem::path& path) {
  return std::filesystem::weakly_canonical(path).filename().string();  // of "gated/" too
}

struct AskedPrompt {
  look::Prompt prompt;
  look::LookOptions options;
};

/// Reads a prompt and checks all that is asked of it.
AskedPrompt asked_prompt(const LookArguments& arguments, const PromptSource& source,
                         const models::CheckpointSource& checkpoint, bool json) {
  AskedPrompt asked;
  naming_the_line(source, [&] {
    asked.prompt = look::read_prompt(source.from, checkpoint.config, checkpoint.path);
    query_of(arguments, asked.prompt);
    asked.options = options_of(arguments, asked.prompt, checkpoint.config, json);
    look::check_can_look(checkpoint.config, asked.prompt, asked.options);
  });
  return asked;
}

void look(const LookArguments& arguments, const GlobalOptions& global) {
  check_numbers(arguments, global.json);
  if (!arguments.out.empty()) check_holds_no_run(std::filesystem::weakly_canonical(arguments.out), "--out");
  const std::filesystem::path path = locate_language_model(arguments.model, "look");
  const models::CheckpointSource checkpoint = models::open_checkpoint(path, arguments.ignored_config_keys);
  std::vector<AskedPrompt> asked;
  for (const PromptSource& source : prompt_sources(arguments.prompts, arguments.text))
    asked.push_back(asked_prompt(arguments, source, checkpoint, global.json));
  for (const AskedPrompt& one : asked)
    if (one.prompt.without_line_end && !global.quiet)
      tell_note("the prompt ends in a line end, which is a part of its tokens (printf '%s' writes none)");
  for (const std::string& note : checkpoint.notes) tell_warning("{}", note);
  const models::LoadOptions load = arguments.load_options(global);
  if (!arguments.out.empty()) ensure_writable_folder(arguments.out);  // a request that is refused leaves none behind
  const auto model = models::load_own_decoder(checkpoint.path, load);
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const auto& [prompt, options] = asked[i];
    const PromptLook found = look::look_at(*model, prompt, options);
    const std::int64_t query = query_of(arguments, prompt);
    if (!arguments.out.empty()) {
      const std::filesystem::path out = page_folder(arguments, i);
      tell_written(reports::write_look_report({&found, query, model_name(path)}, out), out, "look");
    }
    if (global.json) {
      reports::write_look_json(found, write_result);
    } else {
      print_result("{}{}", i == 0 ? "" : "\n", reports::print_look(found, query));
    }
  }
}

}  // namespace

void add_look(CLI::App& app, const GlobalOptions& global, Action& action) {
  CLI::App* command = add_subcommand(
      app, subcommand_named("look"), "gainlens look MODEL --prompt 'The capital of France is' --head 17.2",
      "One forward pass over one prompt: its tokens, the most likely next tokens, and for each head n_eff, K, "
      "entropy,\n"
      "BOS mass and the keys with the most weight. The prompt is taken as it is: no chat template is applied.\n"
      "Memory grows with the number of tokens, not with its square. docs/look.md explains every number.");
  auto arguments = std::make_shared<LookArguments>();
  add_model_option(*command, arguments->model);
  add_prompt_options(*command, arguments->prompts, "--json prints a line for each");
  add_text_options(*command, arguments->text);
  command->add_option("--head", arguments->head,
                      "LAYER.HEAD, as 17.2: shows the weight of every key for one query of this head");
  command->add_option("--query", arguments->query,
                      "Position of the query that is shown, from 0 (default: the last one); with --lens the only one");
  command->add_option("--top-keys", arguments->top_keys, "Keys with the most weight that are kept of each query")
      ->capture_default_str();
  command->add_option("--next", arguments->next,
                      "Number of most likely next tokens (default: 10; in each row of --lens 3)");
  command->add_flag("--lens", arguments->lens,
                    "Logit lens: what comes next by the stream after each layer, with entropy, the divergence from the "
                    "last layer, and the rank of --answer. --json and --out have it at every position");
  command->add_option("--answer", arguments->answer,
                      "A token, as a text that is one token (' Paris') or as an id: its logit minus that of --foil "
                      "is attributed to embedding, heads and MLPs");
  command->add_option("--foil", arguments->foil, "The token that --answer is compared with (' Rome')");
  command->add_option(
      "--segments", arguments->segments,
      "JSON file with pieces of the prompt, [{\"name\": \"question\", \"begin\": 0, \"end\": 12}, ..] in "
      "tokens: each head's attention mass on each piece");
  command->add_option("--segment-queries", arguments->segment_queries, "The masses are means over so many last queries")
      ->capture_default_str();
  add_dtype_option(*command, arguments->dtype);
  add_stream_weights(*command, arguments->stream_weights);
  command->add_flag("--allow-extrapolation", arguments->allow_extrapolation,
                    "Allow a prompt longer than the model's number of positions");
  command->add_option("--out", arguments->out,
                      "Folder for report.html, summary.json and tables as CSV; made if it does not exist. With --batch "
                      "it holds a folder for each prompt");
  add_ignored_keys(*command, arguments->ignored_config_keys);
  set_action(*command, action, [arguments, &global] { look(*arguments, global); });
}

}  // namespace gainlens::cli
