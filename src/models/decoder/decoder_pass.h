#pragma once

#include "models/decoder/decoder.h"
#include "models/decoder/rope.h"

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace gainlens::models {

/// The state of one request during the pass.
struct Decoder::Pass {
  const hooks::ForwardRequest& request;
  const hooks::Hooks& hooks;
  hooks::AttentionOp& attention;
  std::vector<RopeTables> ropes;       // [0] of global layers, [1] of layers with a window
  at::Tensor key_bias, distance_bias;  // ALiBi: one of the two, or neither
  at::Tensor hidden;
  at::Tensor precision = {};  // [batch, position, width], float32 or wider; undefined where no filter acts
  double strength = 1;        // share of the filter that acts

  at::Tensor at(std::int64_t layer, std::string_view site, at::Tensor tensor) const {
    return hooks.at(hooks::block_site(layer, site), std::move(tensor));
  }
};

}  // namespace gainlens::models
