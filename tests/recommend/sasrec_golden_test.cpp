#include "recommend/golden_expectations.h"
#include "recommend/sasrec.h"
#include "recommend/sasrec_goldens.h"
#include "recommend/training_batch.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gainlens::recommend {
namespace sasrec_golden_test {

class SasRecGolden : public ::testing::TestWithParam<GoldenCase> {};

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
  observed.expect(config, golden.checkpoint.weights, golden.expected, precision.precision);
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
  expect_gradients(sasrec_slots(config, weights), golden.expected, precision.gradient);
}

INSTANTIATE_TEST_SUITE_P(All, SasRecGolden,
                         ::testing::Combine(::testing::ValuesIn(golden_names()),
                                            ::testing::Values(GoldenPrecision{at::kFloat, 2e-6, 1e-4, 6e-5},
                                                              GoldenPrecision{at::kDouble, 1e-12, 1e-11, 1e-11})),
                         name_of_case);

}  // namespace sasrec_golden_test
}  // namespace gainlens::recommend
