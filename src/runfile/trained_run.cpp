#include "runfile/trained_run.h"

#include "core/atomic_file.h"
#include "runfile/run_file_name.h"
#include "runfile/run_proof.h"

#include <limits>

namespace gainlens::runfile {

std::string arm_of(const std::string& label) {
  return label.substr(0, label.find('/'));
}

std::string variant_of(const std::string& label) {
  const std::size_t slash = label.find('/');
  return slash == std::string::npos ? std::string() : label.substr(slash + 1);
}

std::int64_t epochs_of(const TrainedSeed& seed) {
  return seed.curve.empty() ? 0 : std::ssize(seed.curve.begin()->second);
}

std::map<std::string, double> validation_of(const TrainedSeed& seed) {
  std::map<std::string, double> found;
  for (const auto& [name, values] : seed.curve)
    if (seed.best_epoch > 0) found[name] = values.at(static_cast<std::size_t>(seed.best_epoch) - 1);
  return found;
}

const std::vector<FilterCurve>& filter_curves() {
  static const std::vector<FilterCurve> curves = {
      {"precision", "mean precision of the stream before the layer"},
      {"observation_precision", "mean precision of what attention observes"},
      {"gain", "mean Kalman gain"},
      {"process_noise", "mean process noise Q"},
      {"stretch", "mean factor of the variance in the MLP, max((1 + J)^2, 0.01); NaN in the last layer"},
      {"share_at_most", "share of the observation precisions at their upper bound"},
      {"decay", "rho, by which a weight falls with each place of distance"},
      {"share_of_precision_at_most", "share of the precisions before the layer at their upper bound"},
      {"jacobian_energy", "share of the squared singular values that the low-rank Jacobian keeps"},
      {"stream_size", "root mean square of the stream h before the layer", true},
      {"estimate_size", "root mean square of the estimate e that attention gives", true},
      {"value_size", "root mean square of the values v that attention averages", true},
      {"share_of_raised_sums", "share of the sums of weights of both signs that were raised to their least; else NaN",
       true},
  };
  return curves;
}

void complete_filter(std::map<std::string, std::vector<double>>& filter) {
  if (filter.empty()) return;
  const std::vector<double> unknown(filter.begin()->second.size(), std::numeric_limits<double>::quiet_NaN());
  for (const FilterCurve& curve : filter_curves()) filter.try_emplace(std::string(curve.name), unknown);
}

void publish_run_file(const std::filesystem::path& folder,
                      const std::function<void(const std::filesystem::path& file)>& write) {
  const std::filesystem::path file = folder / run_file_name;
  TemporaryFile written(file);
  write(written.path());
  flush_to_disk(written.path());
  std::filesystem::remove(checksum_file_of(file));
  written.publish();
  write_checksum_beside(file);
}

}  // namespace gainlens::runfile
