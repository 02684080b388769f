#pragma once

#include "recommend/golden_file.h"
#include "recommend/sasrec.h"
#include "recommend/stored_sasrec.h"

#include <ATen/ATen.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace gainlens::recommend {

/// What an independent PyTorch implementation computes in float64; see tests/golden/make_sasrec_golden.py.
struct Golden {
  StoredSasRec checkpoint;
  std::map<std::string, at::Tensor> expected;
  std::vector<std::vector<data::ItemId>> sequences;

  std::vector<std::span<const data::ItemId>> spans() const { return {sequences.begin(), sequences.end()}; }
};

/// Reads a golden and its checkpoint.
inline Golden read_golden(const std::string& name) {
  const std::filesystem::path folder = golden_folder("recommend") / name;
  Golden golden{load_sasrec(folder), {}, {}};
  golden.expected = golden_tensors(folder);
  golden.sequences = golden_sequences(golden.expected);
  return golden;
}

/// The weights as leaves of another type or on another device.
inline SasRecWeights converted(const SasRecConfig& config, SasRecWeights weights, const at::TensorOptions& options) {
  for (const SasRecSlot& slot : sasrec_slots(config, weights))
    *slot.tensor = slot.tensor->detach().to(options).clone().requires_grad_(slot.role != WeightRole::constant);
  return weights;
}

/// The names of the goldens of all arms.
inline std::vector<std::string> golden_names() {
  return golden_names("recommend");
}

/// A step with dropout.
inline RunOptions noisy(std::uint64_t key, std::int64_t first_row) {
  return {.noise = {0.5, 0.5, key, first_row}};
}

/// A model of the goldens in float32.
inline SasRec model_of(const std::string& name) {
  Golden golden = read_golden(name);
  return SasRec(golden.checkpoint.config, converted(golden.checkpoint.config, golden.checkpoint.weights, at::kFloat));
}

}  // namespace gainlens::recommend
