#include "generation/generate.h"

#include "core/check.h"
#include "models/decoder/key_value_cache.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <chrono>

namespace gainlens::generation {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// One prompt and what was added to it.
struct Text {
  models::KeyValueCache cache;
  Random random;
  std::vector<std::int64_t> next;  ///< tokens that the model has not seen yet
  Continued continued;
};

class Generation {
 public:
  Generation(models::Decoder& model, std::span<const std::vector<tokenizers::TokenId>> prompts,
             const GenerationOptions& options, const SeeNewToken& see)
      : model_(model), options_(options), see_(see) {
    for (std::size_t i = 0; i < prompts.size(); ++i) {
      texts_.push_back({models::KeyValueCache(model.config()),
                        Random(options.seed, i),
                        std::vector<std::int64_t>(prompts[i].begin(), prompts[i].end()),
                        {}});
      generated_.prompt_tokens += std::ssize(prompts[i]);
    }
  }

  Generated run() {
    const Clock::time_point start = Clock::now();
    // One prompt after the other: memory holds the activations of a single one.
    for (Text& text : texts_) extend({&text});
    generated_.prompt_seconds = seconds_since(start);
    const Clock::time_point first_step = Clock::now();
    for (std::vector<Text*> open = unfinished(); !open.empty(); open = unfinished()) {
      extend(open);
      generated_.step_tokens += std::ssize(open);
    }
    generated_.step_seconds = seconds_since(first_step);
    for (Text& text : texts_) generated_.continued.push_back(std::move(text.continued));
    return std::move(generated_);
  }

 private:
  std::vector<Text*> unfinished() {
    std::vector<Text*> open;
    for (Text& text : texts_) {
      if (!text.continued.ended && std::ssize(text.continued.tokens) < options_.max_new) open.push_back(&text);
    }
    return open;
  }

  /// Adds a token to each of the texts.
  void extend(const std::vector<Text*>& texts) {
    std::vector<models::Extension> extensions;
    extensions.reserve(texts.size());
    for (Text* text : texts) extensions.push_back({&text->cache, text->next});
    models::SeeLastQuery see;
    if (options_.statistics)
      see = [&](const models::LastQuery& seen) {
        keep(seen, texts[static_cast<std::size_t>(seen.sequence)]->continued);
      };
    const at::Tensor logits = model_.unembed(model_.extend(extensions, options_.allow_extrapolation, see))
                                  .to(at::kCPU, at::kDouble)
                                  .contiguous();
    if (!logits.isfinite().all().item<bool>()) throw_run_failed("output head: the logits are NaN or infinite");
    for (std::size_t i = 0; i < texts.size(); ++i) {
      Text& text = *texts[i];
      const auto columns = static_cast<std::size_t>(logits.size(1));
      const std::span<const double> row(logits.const_data_ptr<double>() + i * columns, columns);
      const ChosenToken chosen =
          options_.sampling ? drawn_token(row, *options_.sampling, text.random) : most_likely_token(row);
      text.continued.tokens.push_back(chosen.id);
      text.continued.log_probabilities.push_back(chosen.log_probability);
      text.continued.ended = std::find(options_.ends.begin(), options_.ends.end(), chosen.id) != options_.ends.end();
      text.next = {chosen.id};
      if (see_) see_(static_cast<std::size_t>(texts[i] - texts_.data()), chosen.id);
    }
  }

  static void keep(const models::LastQuery& seen, Continued& continued) {
    const std::int64_t heads = seen.n_eff.size(0);
    if (continued.tokens.empty()) {
      for (std::int64_t head = 0; head < heads; ++head) continued.heads.push_back({seen.layer, head, {}, {}, {}, {}});
    }
    const auto first = std::find_if(continued.heads.begin(), continued.heads.end(),
                                    [&](const HeadQueries& one) { return one.layer == seen.layer; });
    for (std::int64_t head = 0; head < heads; ++head) {
      HeadQueries& one = *(first + head);
      const auto add = [head](std::vector<float>& numbers, const at::Tensor& field) {
        numbers.push_back(field[head].item<float>());
      };
      add(one.n_eff, seen.n_eff);
      add(one.kalman_gain, seen.kalman_gain);
      add(one.entropy, seen.entropy);
      add(one.bos_mass, seen.bos_mass);
    }
  }

  models::Decoder& model_;
  const GenerationOptions& options_;
  const SeeNewToken& see_;
  std::vector<Text> texts_;
  Generated generated_;
};

}  // namespace

void check_can_generate(const models::DecoderConfig& config, std::span<const std::vector<tokenizers::TokenId>> prompts,
                        const GenerationOptions& options) {
  CHECK(options.max_new >= 1, "--max-new: {}; must be at least 1", options.max_new);
  if (options.sampling) check_sampling(*options.sampling);
  CHECK(!prompts.empty(), "there is no prompt");
  const bool learned = config.positions == models::Positions::learned;
  for (const auto& prompt : prompts) {
    CHECK(!prompt.empty(), "the prompt holds no token");
    for (std::size_t i = 0; i < prompt.size(); ++i) {
      CHECK(prompt[i] >= 0 && prompt[i] < config.vocabulary,
            "the prompt: id {} at position {}; the vocabulary has {} ids, 0 to {}", prompt[i], i, config.vocabulary,
            config.vocabulary - 1);
    }
    const std::int64_t length = std::ssize(prompt);
    // Not their sum, which may overflow.
    const bool fits = length <= config.max_positions && options.max_new <= config.max_positions - length;
    CHECK(fits || (options.allow_extrapolation && !learned),
          "the prompt has {} tokens and --max-new asks for {} more; the model was made for {}. Ask for fewer{}", length,
          options.max_new, config.max_positions, learned ? ": it has no vector for a later position" : options.remedy);
  }
}

Generated generate(models::Decoder& model, std::span<const std::vector<tokenizers::TokenId>> prompts,
                   const GenerationOptions& options, const SeeNewToken& see) {
  check_can_generate(model.config(), prompts, options);
  const c10::InferenceMode inference;
  return Generation(model, prompts, options, see).run();
}

}  // namespace gainlens::generation
