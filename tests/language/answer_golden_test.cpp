// Against tests/golden/finetune.json: one step of the field's Python reference with its autograd, in float64.
#include "core/json.h"
#include "language/answer_task.h"
#include "models/checkpoint/checkpoint.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

namespace gainlens::language {
namespace {

TEST(FinetuneGolden, LossAndGradientsOfAStepAreTheReferences) {
  const std::string folder = GAINLENS_SOURCE_DIR "/tests/golden/";
  const Json golden = read_json_file(folder + "finetune.json");
  std::vector<AnswerRow> rows;
  for (const Json& row : golden.at("rows"))
    rows.push_back({row.at("ids").get<std::vector<std::int64_t>>(), row.at("first_answer").get<std::int64_t>(), false});
  double worst = 0;
  std::size_t compared = 0;
  for (const auto& [name, steps] : golden.items()) {
    if (name == "versions" || name == "rows") continue;
    for (const Json& expected : steps) {
      const double gamma = expected.at("gamma");
      SCOPED_TRACE(name + ", gamma " + std::to_string(gamma));
      models::Checkpoint checkpoint = models::load_checkpoint(folder + "models/" + name);
      AnswerTaskOptions options{.batch = std::ssize(rows)};
      if (gamma > 0) options.focal = FocalLoss{.gamma = gamma};
      AnswerTask task(checkpoint.config, std::move(checkpoint.weights), rows, {rows[0]}, 1, options,
                      [](const auto&) { return Json(); });
      EXPECT_NEAR(task.accumulate_gradients(0), expected.at("loss").get<double>(), 1e-5);
      std::size_t own = 0;
      for (const training::ParameterGroup& group : task.parameters()) {
        for (const models::NamedTensor& parameter : group.parameters) {
          ASSERT_TRUE(expected.at("gradients").contains(parameter.name)) << parameter.name;
          const Json& numbers = expected.at("gradients").at(parameter.name);
          const at::Tensor gradient = parameter.tensor.grad().flatten().to(at::kDouble);
          const double norm = numbers.at(0);
          const double product = at::dot(gradient, at::arange(gradient.size(0), at::kDouble).cos()).item<double>();
          const double error = std::max(std::abs(gradient.norm().item<double>() - norm),
                                        std::abs(product - numbers.at(1).get<double>())) /
                               norm;
          EXPECT_LT(error, 1e-5) << parameter.name;
          worst = std::max(worst, error);
          ++own;
        }
      }
      EXPECT_EQ(own, expected.at("gradients").size());
      compared += own;
    }
  }
  EXPECT_GE(compared, 3u * 3u * 20u);
  std::printf("largest error of %zu gradients, of their norm: %.3g\n", compared, worst);
}

}  // namespace
}  // namespace gainlens::language
