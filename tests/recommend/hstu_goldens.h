#pragma once

#include "recommend/golden_file.h"
#include "recommend/hstu.h"
#include "recommend/recommender_checkpoint.h"

#include <ATen/ATen.h>

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace gainlens::recommend {

/// What an independent PyTorch implementation computes in float64; see tests/golden/make_hstu_golden.py.
struct HstuGolden {
  HstuConfig config;
  HstuWeights weights;  ///< float32
  std::map<std::string, at::Tensor> expected;
  std::vector<std::vector<data::ItemId>> sequences;
  std::vector<double> times;  ///< [interaction] of all sequences, one after the other

  /// The histories, each without its last `fewer` interactions. Their memory is that of this object.
  std::vector<data::History> histories(std::size_t fewer = 0) const {
    std::vector<data::History> all;
    std::size_t begin = 0;
    for (const auto& sequence : sequences) {
      const data::History whole{sequence, std::span(times).subspan(begin, sequence.size())};
      if (sequence.size() > fewer) all.push_back(whole.first(sequence.size() - fewer));
      begin += sequence.size();
    }
    return all;
  }
  /// A model with leaves of the type as its weights.
  Hstu model(at::ScalarType type) const {
    HstuWeights own = weights;
    for (const WeightSlot& slot : hstu_slots(config, own))
      *slot.tensor = slot.tensor->detach().to(type).clone().requires_grad_(slot.role != WeightRole::constant);
    return {config, std::move(own)};
  }
};

inline HstuGolden read_hstu_golden(const std::string& name) {
  const std::filesystem::path folder = golden_folder("hstu") / name;
  const RecommenderCheckpoint checkpoint = open_recommender(folder);
  const auto& model = dynamic_cast<const Hstu&>(*checkpoint.model);
  HstuGolden golden{model.config(), model.weights(), golden_tensors(folder), {}, {}};
  golden.sequences = golden_sequences(golden.expected);
  const at::Tensor times = golden.expected.at("times");
  golden.times.assign(times.const_data_ptr<double>(), times.const_data_ptr<double>() + times.numel());
  return golden;
}

}  // namespace gainlens::recommend
