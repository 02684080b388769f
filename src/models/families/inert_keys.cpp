#include "models/families/inert_keys.h"

#include <algorithm>

namespace gainlens::models {

std::span<const InertGroup> inert_groups() {
  static const std::vector<InertGroup> groups = {
      {"who wrote the file, with what, and from where",
       {"_name_or_path", "name_or_path", "_commit_hash", "transformers_version", "unsloth_version", "unsloth_fixed",
        "_from_model_config", "trust_remote_code"}},
      {"which class reads texts, and how layers are spread over devices",
       {"tokenizer_class", "processor_class", "base_model_pp_plan", "base_model_tp_plan", "base_model_ep_plan",
        "pretraining_tp"}},
      {"the dtype of the stored weights, which the weights themselves give; --dtype decides the compute dtype",
       {"dtype", "torch_dtype"}},
      {"training only: initial values and dropout, which a frozen model does not apply",
       {"initializer_range", "initializer_factor", "attention_dropout", "hidden_dropout", "embd_pdrop", "resid_pdrop",
        "attn_pdrop", "classifier_dropout", "gradient_checkpointing", "use_gradient_checkpointing"}},
      {"how the reference implementation runs, not what it computes: caches, attention kernels, what is returned",
       {"use_cache", "return_dict", "output_attentions", "output_hidden_states", "torchscript", "use_bfloat16", "fp16",
        "bf16", "_attn_implementation", "attn_implementation", "_attn_implementation_autoset",
        "_attn_implementation_internal", "_experts_implementation", "_flash_attn_2_enabled", "chunk_size_feed_forward",
        "is_decoder", "tie_last_hidden_states", "tie_encoder_decoder", "keys_to_ignore_at_inference"}},
      {"generation: how tokens are picked from the logits, and which ids stop it",
       {"eos_token_id",
        "pad_token_id",
        "sep_token_id",
        "decoder_start_token_id",
        "forced_bos_token_id",
        "forced_eos_token_id",
        "generation_config",
        "min_new_tokens",
        "min_p",
        "temperature",
        "top_k",
        "top_p",
        "typical_p",
        "do_sample",
        "num_beams",
        "num_beam_groups",
        "num_return_sequences",
        "diversity_penalty",
        "repetition_penalty",
        "length_penalty",
        "no_repeat_ngram_size",
        "encoder_no_repeat_ngram_size",
        "bad_words_ids",
        "begin_suppress_tokens",
        "suppress_tokens",
        "exponential_decay_length_penalty",
        "early_stopping",
        "max_length",
        "min_length",
        "max_new_tokens",
        "output_scores",
        "return_dict_in_generate",
        "remove_invalid_values",
        "prefix"}},
      {"labels and tasks of heads other than the language model",
       {"id2label", "label2id", "num_labels", "problem_type", "finetuning_task", "task_specific_params"}},
  };
  return groups;
}

std::span<const std::string_view> inert_keys() {
  static const std::vector<std::string_view> keys = [] {
    std::vector<std::string_view> all;
    for (const InertGroup& group : inert_groups()) all.insert(all.end(), group.keys.begin(), group.keys.end());
    return all;
  }();
  return keys;
}

namespace {

/// Whether one of the words of a key (between underscores) is `word`.
bool has_word(std::string_view key, std::string_view word) {
  for (std::size_t at = key.find(word); at != std::string_view::npos; at = key.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || key[at - 1] == '_') && (end == key.size() || key[end] == '_')) return true;
  }
  return false;
}

bool is_id(const Json& value) {
  return value.is_number_integer() || (value.is_array() && std::ranges::all_of(value, [](const Json& element) {
                                         return element.is_number_integer();
                                       }));
}

bool is_share(const Json& value) {
  return value.is_number() && value >= 0 && value <= 1;
}

}  // namespace

bool is_inert_by_kind(std::string_view key, const Json& value) {
  const auto has = [key](std::string_view word) { return has_word(key, word); };
  // Training. Dropout is a probability: a switch named dropout may act on a frozen model too.
  if (has("dropout") || has("pdrop") || has("layerdrop")) return is_share(value);
  if (has("initializer") || has("init")) return true;
  if (has("loss")) return value.is_number() || value.is_boolean() || value.is_string();
  // Names of files, and of the model.
  if (key.ends_with("name_or_path") || key.ends_with("model_name")) return value.is_string();
  // Ids and tokenizers.
  if (key.ends_with("_token_id") || key.ends_with("_token_ids") || key.ends_with("_token_index")) return is_id(value);
  if (key.starts_with("tokenizer")) return value.is_string() || value.is_number();
  // The same computation by other code, or in another precision inside.
  const bool implementation =
      key.find("flash_att") != std::string_view::npos || has("fused") || has("xformers") || key.ends_with("_in_fp32");
  return implementation && (value.is_boolean() || value.is_string());
}

}  // namespace gainlens::models
