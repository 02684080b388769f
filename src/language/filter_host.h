#pragma once

#include "models/decoder/decoder.h"
#include "training/filter_training.h"

#include <vector>

namespace gainlens::language {

/// A trained decoder as the training of its filter sees it. The arguments must exist as long as this object.
class DecoderFilterHost : public training::FilterHost {
 public:
  /// @param weights  the tensors of `decoder`
  DecoderFilterHost(models::Decoder& decoder, const models::DecoderConfig& config, models::DecoderWeights& weights)
      : decoder_(decoder), config_(config), weights_(weights), filter_(config.armed_filter()) {}

  const bft::Filter& armed_filter() const override { return filter_; }
  std::int64_t head_dim() const override { return config_.head_dim; }
  bft::InitialPrecisionWeights& initial_precision_weights() override { return weights_.precision; }
  std::vector<bft::FilterWeights*> layer_filter_weights() override;
  std::vector<models::NamedTensor> filter_constants() override;
  void refresh_jacobian() override { decoder_.refresh_jacobian(); }
  std::vector<double> jacobian_energy() const override { return decoder_.jacobian_energy(); }

 private:
  models::Decoder& decoder_;
  const models::DecoderConfig& config_;
  models::DecoderWeights& weights_;
  bft::Filter filter_;
};

}  // namespace gainlens::language
