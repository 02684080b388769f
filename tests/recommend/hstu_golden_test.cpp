#include "recommend/golden_expectations.h"
#include "recommend/hstu_goldens.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace gainlens::recommend {
namespace hstu_golden_test {

class HstuGoldens : public ::testing::TestWithParam<GoldenCase> {};

TEST_P(HstuGoldens, StreamScoresLossAndGradientsAreThoseOfTheReference) {
  const auto& [name, precision] = GetParam();
  const HstuGolden golden = read_hstu_golden(name);
  Hstu model = golden.model(precision.type);
  const PackedSequences packed = pack(golden.histories(), model.view());
  const ObservedFilter observed;
  const at::Tensor hidden = model.run(packed, {.training = true}, observed.hooks());
  EXPECT_LT(relative(hidden, golden.expected.at("hidden")), precision.forward);
  observed.expect(golden.config, golden.weights, golden.expected, precision.precision);
  const bool running = golden.expected.contains("evaluation_hidden");
  EXPECT_EQ(running, golden.config.has_gain());
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
  expect_gradients(model.slots(), golden.expected, precision.gradient);
}

INSTANTIATE_TEST_SUITE_P(All, HstuGoldens,
                         ::testing::Combine(::testing::ValuesIn(golden_names("hstu")),
                                            ::testing::Values(GoldenPrecision{at::kFloat, 1e-5, 1e-4, 1e-4},
                                                              GoldenPrecision{at::kDouble, 1e-12, 1e-10, 1e-10})),
                         name_of_case);

}  // namespace hstu_golden_test
}  // namespace gainlens::recommend
