#include "models/families/inert_keys.h"

namespace gainlens::models {

std::span<const InertGroup> inert_groups() {
  static const std::vector<InertGroup> groups = {
      {"who wrote the file, with what, and from where",
       {"_name_or_path", "name_or_path", "_commit_hash", "transformers_version", "transformers.js_config",
        "unsloth_version", "unsloth_fixed", "is_llama_config", "_from_model_config"}},
      {"which class or code loads the weights; model_type and the tensors decide what is computed, and every tensor is "
       "checked",
       {"architectures", "auto_map", "tokenizer_class", "processor_class", "base_model_pp_plan", "base_model_tp_plan"}},
      {"training only: initial values and dropout, which a frozen model does not apply",
       {"initializer_range", "initializer_factor", "attention_dropout", "hidden_dropout", "embd_pdrop", "resid_pdrop",
        "attn_pdrop", "classifier_dropout", "gradient_checkpointing"}},
      {"how the reference implementation runs, not what it computes: caches, attention kernels, what is returned",
       {"use_cache", "return_dict", "output_attentions", "output_hidden_states", "torchscript", "use_bfloat16",
        "_attn_implementation", "attn_implementation", "_attn_implementation_autoset", "_attn_implementation_internal",
        "_experts_implementation", "_flash_attn_2_enabled", "chunk_size_feed_forward", "is_decoder",
        "tie_last_hidden_states", "tie_encoder_decoder", "keys_to_ignore_at_inference"}},
      {"generation: how tokens are picked from the logits, and which ids stop it",
       {"eos_token_id",
        "pad_token_id",
        "sep_token_id",
        "decoder_start_token_id",
        "forced_bos_token_id",
        "forced_eos_token_id",
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

}  // namespace gainlens::models
