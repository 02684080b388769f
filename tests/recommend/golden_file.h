#pragma once

#include "data/interactions.h"
#include "formats/tensor_file.h"
#include "models/checkpoint/tensor_values.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace gainlens::recommend {

/// The folder of the goldens of a kind: below tests/golden.
inline std::filesystem::path golden_folder(const std::string& kind) {
  return std::filesystem::path(GAINLENS_SOURCE_DIR) / "tests/golden" / kind;
}

/// The names of the goldens of a kind.
inline std::vector<std::string> golden_names(const std::string& kind) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(golden_folder(kind))) {
    if (std::filesystem::exists(entry.path() / "golden.safetensors")) names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// What a golden expects: float64, or int64.
inline std::map<std::string, at::Tensor> golden_tensors(const std::filesystem::path& folder) {
  std::map<std::string, at::Tensor> tensors;
  const formats::TensorFile file = formats::TensorFile::open(folder / "golden.safetensors");
  for (const auto& [key, entry] : file.entries()) {
    if (entry.dtype == formats::DType::i64) {
      at::Tensor values = at::empty(entry.shape, at::kLong);
      std::memcpy(values.mutable_data_ptr(), entry.bytes.data(), entry.bytes.size());
      tensors[key] = values;
    } else {
      tensors[key] = models::read_values(entry, at::kDouble, folder.filename().string());
    }
  }
  return tensors;
}

/// The sequences of a golden.
inline std::vector<std::vector<data::ItemId>> golden_sequences(const std::map<std::string, at::Tensor>& tensors) {
  const at::Tensor lengths = tensors.at("sequence_lengths"), items = tensors.at("sequences");
  std::vector<std::vector<data::ItemId>> sequences;
  std::int64_t begin = 0;
  for (std::int64_t i = 0; i < lengths.size(0); ++i) {
    auto& sequence = sequences.emplace_back();
    for (std::int64_t j = 0; j < lengths[i].item<std::int64_t>(); ++j)
      sequence.push_back(static_cast<data::ItemId>(items[begin++].item<std::int64_t>()));
  }
  return sequences;
}

/// The largest error relative to the largest expected number, or to `floor` if all are smaller.
inline double relative(const at::Tensor& found, const at::Tensor& expected, double floor = 0) {
  const double scale = std::max(expected.abs().max().item<double>(), floor);
  return (found.detach().to(at::kDouble) - expected).abs().max().item<double>() / scale;
}

}  // namespace gainlens::recommend
