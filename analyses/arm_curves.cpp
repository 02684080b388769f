#include "analyses/arm_curves.h"

#include <algorithm>
#include <string>

namespace gainlens::analyses {

std::vector<ArmCurve> curves_of(const RecommenderArm& arm) {
  std::vector<ArmCurve> curves;
  for (const std::size_t seed : arm.finished()) {
    const runfile::TrainedSeed& result = arm.result(seed);
    const auto found = result.curve.find(std::string(curve_metric)), loss = result.curve.find("training_loss");
    if (found == result.curve.end()) continue;
    curves.push_back({arm.run->seeds[seed], found->second, result.best_epoch,
                      loss == result.curve.end() ? std::vector<double>() : loss->second});
  }
  return curves;
}

std::vector<double> mean_curve(std::span<const ArmCurve> curves, std::vector<double> ArmCurve::*member) {
  if (curves.empty()) return {};
  std::vector<double> sums = curves.front().*member;
  for (const ArmCurve& curve : curves.subspan(1)) {
    sums.resize(std::min(sums.size(), (curve.*member).size()));
    for (std::size_t epoch = 0; epoch < sums.size(); ++epoch) sums[epoch] += (curve.*member)[epoch];
  }
  for (double& sum : sums) sum /= static_cast<double>(curves.size());
  return sums;
}

}  // namespace gainlens::analyses
