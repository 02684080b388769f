#pragma once

#include "hooks/hooks.h"
#include "recommend/golden_file.h"
#include "recommend/weight_slot.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

// What every backbone is held to by its goldens.

namespace gainlens::recommend {

/// Largest relative errors. Precisions are reciprocals of variances, which can be small beside the squares of values.
struct GoldenPrecision {
  at::ScalarType type;
  double forward, precision, gradient;
};

inline void PrintTo(const GoldenPrecision& precision, std::ostream* stream) {
  *stream << c10::toString(precision.type);
}

using GoldenCase = std::tuple<std::string, GoldenPrecision>;  ///< name of the golden

inline std::string name_of_case(const ::testing::TestParamInfo<GoldenCase>& info) {
  std::string name = std::get<0>(info.param);
  std::replace(name.begin(), name.end(), '-', '_');
  return name + (std::get<1>(info.param).type == at::kFloat ? "_float32" : "_float64");
}

/// What the filter does in each layer, against the reference.
class ObservedFilter {
 public:
  ObservedFilter() {
    hooks_.observe(hooks::Glob("*"), [this](const hooks::Site& site, const at::Tensor& tensor) {
      seen_[site.name] = tensor.detach().flatten(0, 1).flatten(1).clone();
    });
  }
  const hooks::Hooks& hooks() const { return hooks_; }

  /// @param config, weights  of the golden's model; the weights in float32
  /// @param expected         what its file holds
  template <typename Config, typename Weights>
  void expect(const Config& config, const Weights& weights, const std::map<std::string, at::Tensor>& expected,
              double tolerance) const {
    if (!config.has_gain()) {
      EXPECT_FALSE(seen_.contains("blocks.0.hook_precision"));
      return;
    }
    const auto strength = weights.precision.strength.template item<double>();
    for (std::int64_t layer = 0; layer < config.layers; ++layer) {
      const auto expect_equal = [&](const at::Tensor& found, const char* name) {
        EXPECT_LT(relative(found, expected.at(fmt::format("{}.{}", name, layer))), tolerance) << name << layer;
      };
      const auto seen = [&](std::string_view site) { return seen_.at(hooks::block_site(layer, site).name); };
      expect_equal(seen("hook_precision"), "precision");
      expect_equal(seen("attn.hook_observation_precision"), "observation_precision");
      expect_equal(1 + strength * (seen("attn.hook_gain") - 1), "gain");
    }
  }

 private:
  hooks::Hooks hooks_;
  std::map<std::string, at::Tensor> seen_;
};

/// The gradients of a model's weights after backward().
inline void expect_gradients(const std::vector<WeightSlot>& slots, const std::map<std::string, at::Tensor>& of_golden,
                             double tolerance) {
  for (const WeightSlot& slot : slots) {
    if (slot.role == WeightRole::constant) continue;
    const at::Tensor expected = of_golden.at("gradient." + slot.name), found = slot.tensor->grad();
    // What nothing reads has no gradient, and 0 in the reference.
    if (!found.defined()) {
      EXPECT_EQ(expected.abs().max().item<double>(), 0) << slot.name;
      continue;
    }
    // The gradient of a key's bias is 0: all keys of a query get the same addition.
    EXPECT_LT(relative(found, expected, 1e-3), tolerance) << slot.name;
  }
}

}  // namespace gainlens::recommend
