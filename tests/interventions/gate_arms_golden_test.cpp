// Against tests/golden/gate-arms.json: what an independent program in numpy computes in float64.
#include "core/json.h"
#include "interventions/gate_arm_reading.h"
#include "models/checkpoint/load_decoder.h"

#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

namespace gainlens::interventions {
namespace gate_arms_golden_test {

using Documents = std::vector<std::vector<std::int32_t>>;

void expect_near(const Json& expected, double found, double tolerance, const std::string& what) {
  const double number = expected.get<double>();
  EXPECT_NEAR(found, number, tolerance * std::max(1.0, std::abs(number))) << what;
}

void compare_heads(const GainCalibration& found, const Json& expected, double tolerance, const std::string& name) {
  ASSERT_EQ(found.heads.size(), expected.size()) << name;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const runfile::CalibratedHead& head = found.heads[i];
    const std::string what = name + " head " + std::to_string(i);
    EXPECT_EQ(head.layer, expected[i].at("layer").get<std::int64_t>()) << what;
    EXPECT_EQ(head.head, expected[i].at("head").get<std::int64_t>()) << what;
    expect_near(expected[i].at("raw_mean"), head.raw_mean, tolerance, what);
    ASSERT_EQ(head.gate.has_value(), expected[i].contains("gate")) << what;
    if (!head.gate) continue;
    expect_near(expected[i].at("gate"), *head.gate, tolerance, what);
    expect_near(expected[i].at("gate"), head.gain.value(), 1e-6, what);
    expect_near(expected[i].at("scale"), head.scale.value(), tolerance, what);
    expect_near(expected[i].at("lambda"), head.lambda.value(), std::max(tolerance, 1e-6), what);
  }
}

void compare_checkpoint(const std::string& name, const Json& golden, at::ScalarType dtype, double tolerance) {
  models::LoadOptions load;
  load.dtype = dtype;
  const auto model = models::load_own_decoder(GAINLENS_SOURCE_DIR "/tests/golden/models/" + name, load);
  const Json& expected = golden.at("checkpoints").at(name);
  const GainCalibration calibration = calibrate_gates(*model, expected.at("calibration").get<Documents>(),
                                                      golden.at("trained_length").get<std::int64_t>(), true);
  compare_heads(calibration, expected.at("heads"), tolerance, name);
  const std::vector<std::int32_t> document = expected.at("document");
  for (const auto& [text, readings] : expected.at("arms").items()) {
    const GateArm arm = text == "native" ? GateArm::native : gate_arms({text}, model->config().gate).at(1);
    for (std::size_t i = 0; i < readings.size(); ++i) {
      const std::int64_t length = golden.at("contexts").at(i);
      const GateContext context{last_tokens(document, length, false), golden.at("targets").get<std::int64_t>(), 0};
      const runfile::GateArmReading found = read_gate_arm(*model, arm, calibration, context, 0);
      const std::string what = name + " " + text + " " + std::to_string(length);
      // lambda comes from bins of lambda_obs.
      const double loss_tolerance = std::max(tolerance, 1e-8);
      expect_near(readings[i].at("nll"), found.nll, loss_tolerance, what);
      expect_near(readings[i].at("gate_mean"), found.gate_mean, loss_tolerance, what);
      expect_near(readings[i].at("bos_mass"), found.bos_mass, loss_tolerance, what);
      expect_near(readings[i].at("n_eff"), found.n_eff, loss_tolerance, what);
    }
  }
}

TEST(GateArmsGolden, EqualsAnIndependentProgram) {
  const c10::InferenceMode inference;
  const Json golden = read_json_file(GAINLENS_SOURCE_DIR "/tests/golden/gate-arms.json");
  ASSERT_EQ(golden.at("checkpoints").size(), 3u);
  for (const auto& [name, checkpoint] : golden.at("checkpoints").items()) {
    compare_checkpoint(name, golden, at::kDouble, 1e-10);
    compare_checkpoint(name, golden, at::kFloat, 2e-5);
  }
}

/// Were the arms all alike, the comparison would show nothing.
TEST(GateArmsGolden, ItsArmsDiffer) {
  const Json golden = read_json_file(GAINLENS_SOURCE_DIR "/tests/golden/gate-arms.json");
  for (const auto& [name, checkpoint] : golden.at("checkpoints").items()) {
    const auto& arms = checkpoint.at("arms");
    for (const auto& [a, one] : arms.items()) {
      for (const auto& [b, other] : arms.items()) {
        if (a == b) continue;
        EXPECT_GT(std::abs(one[1].at("nll").get<double>() - other[1].at("nll").get<double>()), 1e-6) << name << a << b;
      }
    }
  }
}

}  // namespace gate_arms_golden_test
}  // namespace gainlens::interventions
