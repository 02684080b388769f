#pragma once

#include "formats/tensor_file.h"
#include "models/checkpoint/tensor_slots.h"
#include "models/decoder/decoder_config.h"
#include "models/families/family.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

// Low-rank adapters (LoRA) in the file layout of PEFT, without libtorch: which projections one changes, and by what.
// Source: Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models" (2021); PEFT 0.21.

namespace gainlens::models {

/// What an adapter adds to one stored projection W [out, in]: scale B A. To an embedding [vocabulary, width] it adds
/// the transpose, with A [rank, vocabulary] and B [width, rank].
struct LoraFactors {
  TensorSlot slot;            ///< of W, by the names of checkpoints in Hugging Face layout
  formats::TensorEntry down;  ///< A [rank, in]
  formats::TensorEntry up;    ///< B [out, rank]
  double scale = 1;           ///< alpha / rank, or alpha / sqrt(rank) with use_rslora
  bool embedding = false;
};

/// Weights of the base that the file of an adapter repeats: PEFT writes them beside factors of the embedding and the
/// head.
struct RepeatedBase {
  std::string name;  ///< of the tensor, by the names of checkpoints in Hugging Face layout
  formats::TensorEntry entry;
};

/// An adapter on disk. Its tensors are still in the mapped file.
struct LoraAdapter {
  std::filesystem::path folder;
  std::vector<std::filesystem::path> files;  ///< adapter_config.json and adapter_model.safetensors
  std::vector<LoraFactors> factors;          ///< at most one of each projection
  std::vector<RepeatedBase> repeated;
};

/// @param folder  of formats::find_adapter()
/// @param config  of the base model, of this family
/// @throws InvalidArgument  as read_lora_config; a tensor that is no factor of a projection or embedding of the base,
/// or
///     does not fit it; one of two factors missing; a rank that differs from that of the configuration; factors of the
///     embedding or the head where they are one tensor
LoraAdapter open_lora_adapter(const std::filesystem::path& folder, const Family& family, const DecoderConfig& config);

/// The names of projections that an adapter may be trained on: q, k, v, o, gate, up, down.
const std::vector<std::string>& lora_targets();

/// A stored projection with the name of its module in a layer.
struct LoraModule {
  TensorSlot slot;
  std::string name;  ///< "self_attn.q_proj"
};

/// The stored projections that these targets name, of every layer. A stored tensor that holds several of them is one
/// module, as in PEFT.
/// @param targets  of lora_targets(); empty: all that the model has
/// @throws InvalidArgument  an unknown name, or one twice; one that the model does not have; some of those that one
///     stored tensor holds and not the others; a model with latent attention
std::vector<LoraModule> lora_modules(const DecoderConfig& config, const std::vector<std::string>& targets);

/// Number of inputs and outputs of a projection.
std::int64_t inputs_of(const TensorSlot& slot);
std::int64_t outputs_of(const TensorSlot& slot);

/// Elements of both factors of all modules.
/// @throws InvalidArgument  a rank below 1, or larger than a projection has inputs or outputs
std::int64_t lora_parameter_count(const std::vector<LoraModule>& modules, std::int64_t rank);

/// The slot of a matrix with the rows of W and `columns` columns: those of a factor B.
TensorSlot row_slot(const TensorSlot& slot, std::int64_t columns);

}  // namespace gainlens::models
