#include "recommend/hstu_goldens.h"
#include "training/filter_training.h"

#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

namespace gainlens::recommend {
namespace {

/// Largest relative errors.
struct HstuPrecision {
  at::ScalarType type;
  double forward, precision, gradient;
};

void PrintTo(const HstuPrecision& precision, std::ostream* stream) {
  *stream << c10::toString(precision.type);
}

class HstuGoldens : public ::testing::TestWithParam<std::tuple<std::string, HstuPrecision>> {};

TEST_P(HstuGoldens, StreamScoresLossAndGradientsAreThoseOfTheReference) {
  const auto& [name, precision] = GetParam();
  const HstuGolden golden = read_hstu_golden(name);
  Hstu model = golden.model(precision.type);
  const PackedSequences packed = pack(golden.histories(), model.view());
  std::map<std::string, at::Tensor> seen;
  hooks::Hooks observer;
  observer.observe(hooks::Glob("*"), [&](const hooks::Site& site, const at::Tensor& tensor) {
    seen[site.name] = tensor.detach().flatten(0, 1).flatten(1).clone();
  });
  const at::Tensor hidden = model.run(packed, {.training = true}, observer);
  EXPECT_LT(relative(hidden, golden.expected.at("hidden")), precision.forward);
  const bool filtered = golden.config.has_gain();
  const double strength = filtered ? golden.weights.precision.strength.item<double>() : 1;
  for (std::int64_t layer = 0; filtered && layer < golden.config.layers; ++layer) {
    const auto expect_equal = [&](const at::Tensor& found, const char* what) {
      EXPECT_LT(relative(found, golden.expected.at(fmt::format("{}.{}", what, layer))), precision.precision)
          << what << layer;
    };
    const auto at = [&](std::string_view site) { return seen.at(hooks::block_site(layer, site).name); };
    expect_equal(at("hook_precision"), "precision");
    expect_equal(at("attn.hook_observation_precision"), "observation_precision");
    expect_equal(1 + strength * (at("attn.hook_gain") - 1), "gain");
  }
  const bool running = golden.expected.contains("evaluation_hidden");
  EXPECT_EQ(running, filtered);
  EXPECT_LT(relative(model.run(packed), golden.expected.at(running ? "evaluation_hidden" : "hidden")),
            precision.forward);
  const at::Tensor last = hidden.index_select(0, packed.last_rows());
  EXPECT_LT(relative(at::mm(last, model.head().t()), golden.expected.at("scores")), precision.forward);

  std::vector<std::int64_t> targets;
  for (const auto& sequence : golden.sequences) {
    const std::size_t positions = std::min(sequence.size() - 1, static_cast<std::size_t>(golden.config.positions));
    targets.insert(targets.end(), sequence.end() - static_cast<std::ptrdiff_t>(positions), sequence.end());
  }
  const at::Tensor trained = model.run(pack(golden.histories(/*fewer=*/1), model.view()), {.training = true});
  const at::Tensor loss = model.mean_loss(trained, at::tensor(targets, at::kLong));
  EXPECT_LT(relative(loss, golden.expected.at("loss")[0]), precision.forward);
  loss.backward();
  for (const WeightSlot& slot : model.slots()) {
    if (slot.role == WeightRole::constant) continue;
    const at::Tensor expected = golden.expected.at("gradient." + slot.name), found = slot.tensor->grad();
    // What nothing reads has no gradient, and 0 in the reference.
    if (!found.defined()) {
      EXPECT_EQ(expected.abs().max().item<double>(), 0) << slot.name;
      continue;
    }
    EXPECT_LT(relative(found, expected, 1e-3), precision.gradient) << slot.name;
  }
}

INSTANTIATE_TEST_SUITE_P(All, HstuGoldens,
                         ::testing::Combine(::testing::ValuesIn(golden_names("hstu")),
                                            ::testing::Values(HstuPrecision{at::kFloat, 1e-5, 1e-4, 1e-4},
                                                              HstuPrecision{at::kDouble, 1e-12, 1e-10, 1e-10})),
                         [](const auto& info) {
                           std::string name = std::get<0>(info.param);
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name + (std::get<1>(info.param).type == at::kFloat ? "_float32" : "_float64");
                         });

}  // namespace
}  // namespace gainlens::recommend
