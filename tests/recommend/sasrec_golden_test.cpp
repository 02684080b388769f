#include "recommend/sasrec.h"
#include "recommend/sasrec_goldens.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace gainlens::recommend {
namespace {

/// Largest relative errors. Precisions are reciprocals of variances, which can be small beside the squares of values.
struct Precision {
  at::ScalarType type;
  double forward, precision, gradient;
};

void PrintTo(const Precision& precision, std::ostream* stream) {
  *stream << c10::toString(precision.type);
}

class SasRecGolden : public ::testing::TestWithParam<std::tuple<std::string, Precision>> {};

/// What the filter does in each layer, against the reference.
class ObservedFilter {
 public:
  ObservedFilter() {
    hooks_.observe(hooks::Glob("*"), [this](const hooks::Site& site, const at::Tensor& tensor) {
      seen_[site.name] = tensor.detach().flatten(0, 1).flatten(1).clone();
    });
  }
  const hooks::Hooks& hooks() const { return hooks_; }

  void expect(const Golden& golden, double tolerance) const {
    const SasRecConfig& config = golden.checkpoint.config;
    if (!config.has_gain()) {
      EXPECT_FALSE(seen_.contains("blocks.0.hook_precision"));
      return;
    }
    const auto strength = golden.checkpoint.weights.precision.strength.item<double>();
    for (std::int64_t layer = 0; layer < config.layers; ++layer) {
      const auto expect_equal = [&](const at::Tensor& found, const char* name) {
        EXPECT_LT(relative(found, golden.expected.at(fmt::format("{}.{}", name, layer))), tolerance) << layer;
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

TEST_P(SasRecGolden, StreamScoresLossAndGradientsAreThoseOfTheReference) {
  const auto& [name, precision] = GetParam();
  Golden golden = read_golden(name);
  const SasRecConfig& config = golden.checkpoint.config;
  const SasRec model(config, converted(config, golden.checkpoint.weights, precision.type));
  const PackedSequences packed = pack(golden.spans(), config);
  const ObservedFilter observed;
  const at::Tensor hidden = model.run(packed, {.training = true}, observed.hooks());
  EXPECT_LT(relative(hidden, golden.expected.at("hidden")), precision.forward);
  observed.expect(golden, precision.precision);
  const bool running = golden.expected.contains("evaluation_hidden");
  EXPECT_EQ(running, config.armed_filter().has_running_jacobian());
  const at::Tensor evaluated = golden.expected.at(running ? "evaluation_hidden" : "hidden");
  EXPECT_LT(relative(model.run(packed), evaluated), precision.forward);
  const at::Tensor scores = at::mm(hidden.index_select(0, packed.last_rows()), model.head().t());
  EXPECT_LT(relative(scores, golden.expected.at("scores")), precision.forward);

  std::vector<std::span<const data::ItemId>> inputs;
  std::vector<std::int64_t> targets;
  for (const auto& sequence : golden.sequences) {
    if (sequence.size() < 2) continue;
    inputs.emplace_back(sequence.data(), sequence.size() - 1);
    const std::size_t first =
        sequence.size() - std::min(inputs.back().size(), static_cast<std::size_t>(config.positions));
    targets.insert(targets.end(), sequence.begin() + static_cast<std::ptrdiff_t>(first), sequence.end());
  }
  const at::Tensor loss =
      model.mean_loss(model.run(pack(inputs, config), {.training = true}), at::tensor(targets, at::kLong));
  EXPECT_LT(relative(loss, golden.expected.at("loss")[0]), precision.forward);
  loss.backward();
  SasRecWeights weights = model.weights();
  for (const SasRecSlot& slot : sasrec_slots(config, weights)) {
    if (slot.role == WeightRole::constant) continue;
    const at::Tensor expected = golden.expected.at("gradient." + slot.name), found = slot.tensor->grad();
    // What nothing reads has no gradient, and 0 in the reference.
    if (!found.defined()) {
      EXPECT_EQ(expected.abs().max().item<double>(), 0) << slot.name;
      continue;
    }
    // The gradient of a key's bias is 0: all keys of a query get the same addition.
    EXPECT_LT(relative(found, expected, 1e-3), precision.gradient) << slot.name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, SasRecGolden,
                         ::testing::Combine(::testing::ValuesIn(golden_names()),
                                            ::testing::Values(Precision{at::kFloat, 2e-6, 1e-4, 6e-5},
                                                              Precision{at::kDouble, 1e-12, 1e-11, 1e-11})),
                         [](const auto& info) {
                           std::string name = std::get<0>(info.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name + (std::get<1>(info.param).type == at::kFloat ? "_float32" : "_float64");
                         });

}  // namespace
}  // namespace gainlens::recommend
