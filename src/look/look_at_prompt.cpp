#include "look/look_at_prompt.h"

#include "core/check.h"
#include "kernels/composed/query_weights.h"
#include "look/logit_lens.h"
#include "look/logit_parts.h"
#include "look/most_likely.h"
#include "models/decoder/attention_ops.h"
#include "sweep/one_sequence.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>

namespace gainlens::look {
namespace {

template <typename Number>
std::vector<Number> copied(const at::Tensor& tensor, at::ScalarType type) {
  const at::Tensor plain = tensor.to(at::kCPU, type).contiguous();
  const Number* const data = plain.const_data_ptr<Number>();
  return {data, data + plain.numel()};
}

std::vector<float> floats(const at::Tensor& tensor) {
  return copied<float>(tensor, at::kFloat);
}

/// Takes up what the pass shows.
class Looking {
 public:
  Looking(models::Decoder& model, const Prompt& prompt, const LookOptions& options)
      : model_(model), prompt_(prompt), options_(options), parts_(model) {
    if (options.lens) lens_.emplace(model, *options.lens);
    found_.tokens = prompt.tokens;
    if (prompt.tokenizer != nullptr) {
      for (const tokenizers::TokenId id : prompt.tokens) found_.token_texts.push_back(prompt.tokenizer->token_text(id));
    }
    found_.bos_policy = prompt.bos.explanation;
    if (std::ssize(prompt.tokens) > model.config().max_positions) found_.trained_for = model.config().max_positions;
    found_.top_count = options.top_keys;
    found_.windows = model.config().window;
    found_.segments = options.segments;
    found_.segment_queries = options.segments.empty() ? 0 : options.segment_queries;
  }

  PromptLook run() {
    const c10::InferenceMode inference;
    kernels::ReturnedFields fields = kernels::moments_alone;
    fields.output = fields.entropy = true;
    fields.first_masses = 1;
    fields.key_means = kernels::KeyMeans::all;
    fields.top_keys = options_.top_keys;
    models::StatisticsAttention statistics(
        [&](std::int64_t layer, kernels::QueryStatistics&& seen) {
          see(layer, seen, statistics_->inputs(), statistics_->options());
        },
        kernels::AttentionBackend::automatic, fields);
    statistics_ = &statistics;
    hooks::Hooks hooks;
    if (options_.pair) parts_.attach(hooks);
    if (lens_) lens_->attach(hooks);
    hooks::ForwardOptions forward;
    forward.attention = &statistics;
    forward.allow_extrapolation = options_.allow_extrapolation;
    const at::Tensor stream = model_.forward(sweep::one_sequence(prompt_.tokens), forward, hooks).hidden;
    const at::Tensor logits = model_.unembed(stream[0].slice(0, stream.size(1) - 1))[0];
    if (!logits.isfinite().all().item<bool>()) throw_run_failed("output head: the logits are NaN or infinite");
    found_.next = most_likely(logits, options_.next, prompt_.tokenizer.get());
    if (options_.pair) attribute(logits);
    if (lens_) read_lens();
    return std::move(found_);
  }

 private:
  void see(std::int64_t layer, const kernels::QueryStatistics& seen, const hooks::Qkv& qkv,
           const kernels::AttentionOptions& options) {
    const std::int64_t heads = seen.n_eff.size(0), length = seen.n_eff.size(1);
    at::Tensor last;  // [head, query, key] of the last queries
    if (!options_.segments.empty()) {
      last = kernels::weights_of_queries(options, qkv.query[0], qkv.key[0],
                                         std::max<std::int64_t>(0, length - options_.segment_queries), length)
                 .to(at::kDouble)
                 .mean(1);
    }
    const at::Tensor later = at::arange(length, 0, -1);  // queries from each key on
    for (std::int64_t head = 0; head < heads; ++head) {
      LookedHead& looked = found_.heads.emplace_back();
      looked.layer = layer;
      looked.head = head;
      looked.n_eff = floats(seen.n_eff[head]);
      looked.kalman_gain = floats(seen.kalman_gain[head]);
      looked.entropy = floats(seen.entropy[head]);
      looked.bos_mass = floats(seen.first_mass[head].select(1, 0));
      looked.top_keys = copied<std::int32_t>(seen.top_key[head], at::kInt);
      looked.top_weights = floats(seen.top_weight[head]);
      // A query that a window hides the key from counts in the column mean, with 0.
      const at::Tensor key_mean = seen.key_mean[head].select(1, 0).to(at::kDouble);
      looked.column_mean = floats(key_mean * seen.key_queries[head] / later);
      looked.key_mean = floats(key_mean);
      for (const PromptSegment& segment : options_.segments)
        looked.segment_mass.push_back(last[head].slice(0, segment.begin, segment.end).sum().item<double>());
    }
    if (!options_.query || options_.query->layer != layer) return;
    const std::int64_t head = options_.query->head, query = options_.query->query;
    const at::Tensor weights = kernels::weights_of_queries(options, qkv.query[0], qkv.key[0], query, query + 1);
    found_.query = LookedQuery{layer, head, query, copied<double>(weights[head][0], at::kDouble)};
  }

  /// @param logits  [vocabulary]
  void attribute(const at::Tensor& logits) {
    const interventions::AnswerPair& pair = *options_.pair;
    found_.parts = parts_.finish(pair, interventions::answer_to({.pair = pair}, logits));
    if (prompt_.tokenizer == nullptr) return;
    found_.parts->answer_text = prompt_.tokenizer->token_text(static_cast<tokenizers::TokenId>(pair.answer));
    found_.parts->foil_text = prompt_.tokenizer->token_text(static_cast<tokenizers::TokenId>(pair.foil));
  }

  void read_lens() {
    found_.lens = lens_->rows(prompt_.tokenizer.get());
    if (!options_.lens->answer) return;
    const auto answer = static_cast<tokenizers::TokenId>(*options_.lens->answer);
    found_.lens_answer = answer;
    if (prompt_.tokenizer != nullptr) found_.lens_answer_text = prompt_.tokenizer->token_text(answer);
  }

  models::Decoder& model_;
  const Prompt& prompt_;
  const LookOptions& options_;
  LogitPartsCollector parts_;
  std::optional<LogitLens> lens_;
  models::StatisticsAttention* statistics_ = nullptr;
  PromptLook found_;
};

void check_query(const ChosenQuery& chosen, const models::DecoderConfig& config, std::int64_t length) {
  CHECK(chosen.layer >= 0 && chosen.layer < config.layers, "--head: layer {}; the model has layers 0 to {}",
        chosen.layer, config.layers - 1);
  CHECK(config.attends(chosen.layer), "--head: layer {} has {}, and no attention weights", chosen.layer,
        config.without_attention());
  CHECK(chosen.head >= 0 && chosen.head < config.heads, "--head: head {}; the model has heads 0 to {}", chosen.head,
        config.heads - 1);
  CHECK(chosen.query >= 0 && chosen.query < length, "--query: position {}; the prompt has positions 0 to {}",
        chosen.query, length - 1);
}

}  // namespace

Prompt read_prompt(const sweep::TokenSourceOptions& from, const models::DecoderConfig& config,
                   const std::filesystem::path& checkpoint) {
  sweep::TokenSource source = sweep::read_tokens(from, checkpoint, config.vocabulary, config.bos_token);
  CHECK(!source.tokens.empty(), "the prompt holds no token");
  Prompt prompt;
  prompt.bos = source.bos;
  prompt.tokenizer = source.tokenizer;
  prompt.without_line_end = source.without_line_end;
  if (source.bos.token) prompt.tokens.push_back(*source.bos.token);
  prompt.tokens.insert(prompt.tokens.end(), source.tokens.begin(), source.tokens.end());
  return prompt;
}

void check_can_look(const models::DecoderConfig& config, const Prompt& prompt, const LookOptions& options) {
  const std::int64_t length = std::ssize(prompt.tokens);
  const bool learned = config.positions == models::Positions::learned;
  CHECK(length <= config.max_positions || (options.allow_extrapolation && !learned),
        "the prompt has {} tokens, and the model was made for {}; shorten it{}", length, config.max_positions,
        learned ? ": it has no vector for a later position" : ", or give --allow-extrapolation to go beyond them");
  CHECK(config.attention_layers(config.layers) > 0, "the model has no softmax attention, and so no heads to look at");
  if (options.query) check_query(*options.query, config, length);
  if (options.lens && options.lens->position)
    CHECK(*options.lens->position >= 0 && *options.lens->position < length,
          "--query: position {}; the prompt has positions 0 to {}", *options.lens->position, length - 1);
}

PromptLook look_at(models::Decoder& model, const Prompt& prompt, const LookOptions& options) {
  check_can_look(model.config(), prompt, options);
  return Looking(model, prompt, options).run();
}

}  // namespace gainlens::look
