#include "runfile/trained_run.h"

#include "core/atomic_file.h"
#include "core/check.h"
#include "runfile/attention_run.h"
#include "runfile/experiment_run.h"
#include "runfile/hdf5.h"
#include "runfile/recommend_run.h"
#include "runfile/run_file_name.h"
#include "runfile/run_proof.h"

#include <limits>
#include <optional>
#include <system_error>

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

namespace {

/// Whether a request has the key of its kind of run; empty: it tells no kind, for example because it is broken.
std::optional<bool> has_key(const std::filesystem::path& request, std::string_view key) {
  try {
    const Json stored = read_json_file(request);
    if (!stored.is_object()) return std::nullopt;
    for (const std::string_view kind : {"backbone", "unit", "statistics_version"}) {
      if (stored.contains(kind)) return kind == key;
    }
  } catch (const InvalidArgument&) {
    return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

bool is_run_with(const std::filesystem::path& path, std::string_view key, std::string_view format) {
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(path, ignored);
  const std::filesystem::path file = folder ? path / run_file_name : path;
  const std::filesystem::path request = path / request_file_name;
  // The request tells it without a look into a large file.
  if (folder && std::filesystem::exists(request, ignored)) {
    if (const auto told = has_key(request, key)) return *told;
  }
  if (!std::filesystem::exists(file, ignored)) return false;
  prove_by_neighbour(file);  // what is wrong here is not a question of the kind of run
  try {
    return hdf5::read_text_attribute(hdf5::open_file(file).get(), "format") == format;
  } catch (const hdf5::Error&) {
    return false;
  }
}

void refuse_trained_run(const std::filesystem::path& path) {
  CHECK(!is_recommend_run(path),
        "{}: is a recommender run; gainlens report and compare read it, and a run of gainlens sweep is needed here",
        printable(path.string()));
  CHECK(!is_experiment_run(path),
        "{}: is the run of an experiment; gainlens compare, check, report and inspect read it, and a run of gainlens "
        "sweep is "
        "needed here",
        printable(path.string()));
  CHECK(!is_attention_run(path),
        "{}: is a sweep of recommenders; gainlens report and inspect read it, and the sweep of a language model is "
        "needed here",
        printable(path.string()));
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
