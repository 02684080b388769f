#include "interventions/gate_arm.h"

#include "core/check.h"
#include "core/nearest.h"
#include "core/random.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <set>

namespace gainlens::interventions {
namespace {

const std::array<std::string, 9> arm_names = {"native",   "constant", "gain", "scaled-gain", "modulated",
                                              "permuted", "position", "raw",  "one"};

/// K' of the gated model or K / K_cal of the other, which `permuted` and `position` are controls of.
at::Tensor followed(const at::Tensor& precision, const at::Tensor& gate, const LayerCalibration& calibration) {
  const bool mean = calibration.gain_mean.size(1) == 1;
  const std::int64_t heads = precision.size(0);
  if (!gate.defined())
    return gain_of(precision, at::ones({heads}, at::kDouble), mean) / calibration.gain_mean.unsqueeze(1);
  at::Tensor lambda = at::ones({heads}, at::kDouble);
  for (std::int64_t head = 0; head < heads; ++head)
    lambda[head] = calibration.lambda[static_cast<std::size_t>(head)].value_or(1);
  return gain_of(precision, lambda, mean);
}

/// The native gate in heads whose lambda has no solution.
at::Tensor native_where_unsolved(at::Tensor made, const at::Tensor& gate, const LayerCalibration& calibration) {
  for (std::size_t head = 0; head < calibration.lambda.size(); ++head)
    if (!calibration.lambda[head]) made[static_cast<std::int64_t>(head)].copy_(gate[static_cast<std::int64_t>(head)]);
  return made;
}

/// The queries of each head in another order.
at::Tensor permuted(const at::Tensor& values, std::uint64_t seed, std::uint64_t draw) {
  at::Tensor result = at::empty_like(values);
  const auto orders = query_orders(values.size(0), values.size(1), seed, draw);
  for (std::int64_t head = 0; head < values.size(0); ++head)
    result[head].copy_(values[head].index_select(0, at::tensor(orders[static_cast<std::size_t>(head)])));
  return result;
}

}  // namespace

std::string_view name_of(GateArm arm) {
  return arm_names[static_cast<std::size_t>(arm)];
}

std::uint64_t permutation_draw(std::size_t document, std::int64_t tokens, std::int64_t layer) {
  return (static_cast<std::uint64_t>(document) << 40) ^ (static_cast<std::uint64_t>(tokens) << 14) ^
         static_cast<std::uint64_t>(layer);
}

std::vector<std::vector<std::int64_t>> query_orders(std::int64_t heads, std::int64_t queries, std::uint64_t seed,
                                                    std::uint64_t draw) {
  std::vector<std::vector<std::int64_t>> orders(static_cast<std::size_t>(heads));
  Random random(seed, draw);
  for (std::vector<std::int64_t>& order : orders) {
    order.resize(static_cast<std::size_t>(queries));
    std::iota(order.begin(), order.end(), 0);
    random.shuffle(order);
  }
  return orders;
}

std::vector<GateArm> possible_arms(models::Gate gate) {
  if (gate == models::Gate::none) return {GateArm::native, GateArm::modulated, GateArm::permuted, GateArm::position};
  return {GateArm::native,   GateArm::constant, GateArm::gain, GateArm::scaled_gain, GateArm::modulated,
          GateArm::permuted, GateArm::position, GateArm::raw,  GateArm::one};
}

std::vector<GateArm> gate_arms(const std::vector<std::string>& names, models::Gate gate) {
  const std::vector<GateArm> possible = possible_arms(gate);
  if (names.empty()) return possible;
  std::set<GateArm> asked = {GateArm::native};
  for (const std::string& name : names) {
    const auto found = std::ranges::find(arm_names, name);
    CHECK(found != arm_names.end(), "--arms: '{}'; must be of {}{}", printable(name, 40), fmt::join(arm_names, ", "),
          did_you_mean(name, arm_names));
    const auto arm = static_cast<GateArm>(found - arm_names.begin());
    CHECK(
        std::ranges::find(possible, arm) != possible.end(),
        "--arms: '{}' takes the place of a gate, and the model has none; it can have modulated, permuted and position",
        name);
    asked.insert(arm);
  }
  CHECK(asked.size() > 1, "--arms: native alone; give one that differs from the model");
  return {asked.begin(), asked.end()};
}

bool by_dimension(models::Gate gate) {
  return gate != models::Gate::headwise;
}

at::Tensor gain_of(const at::Tensor& precision, const at::Tensor& lambda, bool mean) {
  const at::Tensor wide = precision.to(at::kDouble);
  const at::Tensor gain = wide / (wide + lambda.view({-1, 1, 1}));
  return mean ? gain.mean(2, true) : gain;
}

at::Tensor gate_of_arm(GateArm arm, const at::Tensor& precision, const at::Tensor& gate,
                       const LayerCalibration& calibration, std::uint64_t seed, std::uint64_t draw) {
  const std::int64_t heads = precision.size(0), queries = precision.size(1), numbers = calibration.gain_mean.size(1);
  const auto raw = [&] { return gain_of(precision, at::ones({heads}, at::kDouble), numbers == 1); };
  switch (arm) {
    case GateArm::native:
      break;
    case GateArm::constant:
      return calibration.gate_mean.unsqueeze(1).expand({heads, queries, numbers});
    case GateArm::gain:
      return native_where_unsolved(followed(precision, gate, calibration), gate, calibration);
    case GateArm::scaled_gain:
      return raw() * at::tensor(calibration.scale, at::kDouble).view({-1, 1, 1});
    case GateArm::modulated: {
      const at::Tensor factor = raw() / calibration.gain_mean.unsqueeze(1);
      return gate.defined() ? gate * factor : factor;
    }
    case GateArm::permuted:
      return native_where_unsolved(permuted(followed(precision, gate, calibration), seed, draw), gate, calibration);
    case GateArm::position:
      ASSERT(calibration.by_position.defined() && calibration.by_position.size(1) >= queries,
             "no calibration of {} positions", queries);
      return native_where_unsolved(calibration.by_position.slice(1, 0, queries).clone(), gate, calibration);
    case GateArm::raw:
      return raw();
    case GateArm::one:
      return at::ones({heads, queries, numbers}, at::kDouble);
  }
  ASSERT(false, "arm {}", static_cast<int>(arm));
}

}  // namespace gainlens::interventions
