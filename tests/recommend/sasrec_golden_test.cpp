#include "recommend/sasrec.h"
#include "recommend/sasrec_goldens.h"
#include "recommend/training_batch.h"

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

/// What the loss of a golden is taken of: the last items are asked, or those that the golden hides.
TrainingBatch asked_of(const Golden& golden) {
  const SasRecConfig& config = golden.checkpoint.config;
  HistoryView view = view_of(config);
  view.mask = 0;
  TrainingBatch batch;
  std::vector<data::History> inputs;
  std::vector<std::int64_t> asked;
  std::int64_t rows = 0, sequences = 0, hidden = 0;
  for (const auto& sequence : golden.sequences) {
    if (sequence.size() < 2) continue;
    const std::span all(sequence);
    inputs.push_back({config.bidirectional ? all : all.first(all.size() - 1), {}});
    const std::size_t positions = std::min(inputs.back().size(), static_cast<std::size_t>(config.positions));
    const std::span targets = all.last(positions);
    if (!config.bidirectional) batch.targets.insert(batch.targets.end(), targets.begin(), targets.end());
    const std::int64_t count =
        config.bidirectional ? golden.expected.at("hidden_counts")[sequences++].item<std::int64_t>() : 0;
    for (std::int64_t i = 0; i < count; ++i) {
      const auto place = golden.expected.at("hidden_places")[hidden++].item<std::int64_t>();
      asked.push_back(rows + place);
      batch.targets.push_back(targets[static_cast<std::size_t>(place)]);
    }
    rows += static_cast<std::int64_t>(positions);
  }
  batch.inputs = pack(inputs, view);
  batch.asked = config.bidirectional ? at::tensor(asked, at::kLong) : at::arange(rows);
  if (config.bidirectional) batch.inputs.items.index_fill_(0, batch.asked, config.items + 1);
  return batch;
}

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
  const ScoreFactors factors = model.score_factors(hidden.index_select(0, packed.last_rows()));
  const at::Tensor scores = at::mm(factors.hidden, factors.head.t());
  EXPECT_LT(relative(scores, golden.expected.at("scores")), precision.forward);

  const TrainingBatch batch = asked_of(golden);
  const at::Tensor trained = model.run(batch.inputs, {.training = true}).index_select(0, batch.asked);
  const at::Tensor loss = model.mean_loss(trained, at::tensor(batch.targets, at::kLong));
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
