#include "cli/text_options.h"

#include "core/check.h"
#include "core/nearest.h"

#include <array>

namespace gainlens::cli {

data::BosPolicy TextOptions::policy() const {
  static const std::array<std::string, 3> policies = {"auto", "always", "never"};
  const auto found = std::find(policies.begin(), policies.end(), bos);
  CHECK(found != policies.end(), "--bos: '{}'; must be auto, always or never{}", printable(bos, 40),
        did_you_mean(bos, policies));
  constexpr std::array values = {data::BosPolicy::automatic, data::BosPolicy::always, data::BosPolicy::never};
  return values[static_cast<std::size_t>(found - policies.begin())];
}

sweep::TokenSourceOptions TextOptions::source() const {
  return {text, tokens, policy()};
}

void add_model_option(CLI::App& command, std::string& model, const std::string& also) {
  command
      .add_option("model", model,
                  "Checkpoint folder in Hugging Face layout, its name on the Hub if it is in the cache, GGUF file or "
                  "a folder with one, or folder of an adapter (LoRA, as PEFT writes it)" +
                      also)
      ->required();
}

void add_dtype_option(CLI::App& command, std::string& dtype) {
  command.add_option("--dtype", dtype, "Compute in float64, float32, bfloat16 or float16 (or fp64, fp32, bf16, fp16)")
      ->capture_default_str();
}

void add_text_options(CLI::App& command, TextOptions& options) {
  command.add_option("--text", options.text,
                     "File with UTF-8 text, plain or gzipped, or - for standard input; the checkpoint's tokenizer "
                     "turns it into tokens");
  command.add_option("--tokens", options.tokens,
                     "File with token ids, to use instead of --text: a JSON array, plain or gzipped");
  command
      .add_option("--bos", options.bos,
                  "BOS token at the start of each chunk: auto (as the tokenizer is configured; none with --tokens), "
                  "always, never")
      ->capture_default_str();
}

void add_targets_option(CLI::App& command, std::optional<std::int64_t>& targets) {
  command.add_option("--targets", targets,
                     "The loss is that of so many last tokens of each document (default: all but the first). The "
                     "output head, which is large where the vocabulary is, runs over no others");
}

std::int64_t chosen_targets(std::optional<std::int64_t> targets) {
  CHECK(!targets || *targets >= 1, "--targets: {}; must be at least 1", *targets);
  return targets.value_or(0);
}

}  // namespace gainlens::cli
