#pragma once

#include "formats/tensor_file.h"
#include "models/checkpoint/tensor_values.h"
#include "recommend/sasrec.h"
#include "recommend/stored_sasrec.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
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
  const std::filesystem::path folder = std::filesystem::path(GAINLENS_SOURCE_DIR) / "tests/golden/recommend" / name;
  Golden golden{load_sasrec(folder), {}, {}};
  const formats::TensorFile file = formats::TensorFile::open(folder / "golden.safetensors");
  for (const auto& [key, entry] : file.entries()) {
    if (entry.dtype == formats::DType::i64) {
      at::Tensor values = at::empty(entry.shape, at::kLong);
      std::memcpy(values.mutable_data_ptr(), entry.bytes.data(), entry.bytes.size());
      golden.expected[key] = values;
    } else {
      golden.expected[key] = models::read_values(entry, at::kDouble, name);
    }
  }
  const at::Tensor lengths = golden.expected.at("sequence_lengths"), items = golden.expected.at("sequences");
  std::int64_t begin = 0;
  for (std::int64_t i = 0; i < lengths.size(0); ++i) {
    auto& sequence = golden.sequences.emplace_back();
    for (std::int64_t j = 0; j < lengths[i].item<std::int64_t>(); ++j)
      sequence.push_back(static_cast<data::ItemId>(items[begin++].item<std::int64_t>()));
  }
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
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(GAINLENS_SOURCE_DIR) / "tests/golden/recommend")) {
    if (std::filesystem::exists(entry.path() / "golden.safetensors")) names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
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

/// The largest error relative to the largest expected number, or to `floor` if all are smaller.
inline double relative(const at::Tensor& found, const at::Tensor& expected, double floor = 0) {
  const double scale = std::max(expected.abs().max().item<double>(), floor);
  return (found.detach().to(at::kDouble) - expected).abs().max().item<double>() / scale;
}

}  // namespace gainlens::recommend
