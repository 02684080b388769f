#pragma once

#include "core/json.h"
#include "runfile/run_store.h"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Files of a run of `gainlens gate-arms`: docs/run-file.md.

namespace gainlens::runfile {

inline constexpr std::string_view gate_arms_format = "gainlens-gate-arms";
inline constexpr std::int64_t gate_arms_version = 1;
inline constexpr const char* gate_arms_result = "gate-arms.json";

/// What is declared before anything is measured. It stands in the request of every run.
struct GateArmsPlan {
  double margin = 0.01;  ///< in nats per token: a smaller difference counts as none
  std::int64_t fewest_documents = 30;
  std::int64_t resamples = 10000;  ///< of documents, for the interval of a slope
  double power = 0.8;              ///< of the differences that the power calculation names
};
inline constexpr GateArmsPlan declared;
inline constexpr std::string_view supported_if =
    "the arm is not worse than native by the margin at the trained length (one-sided 5%), and at the longest context "
    "its loss is below those of native, constant and permuted (paired over documents, Holm's p at most 5%), and the "
    "slope of its difference from native on ln T is below 0 (95% interval over resampled documents)";
Json to_json(const GateArmsPlan& plan);

/// What one arm showed in one context of one document. Means are over layers, heads and queries.
struct GateArmReading {
  double nll = 0;        ///< mean negative log likelihood of the targets, in nats
  double gate_mean = 0;  ///< of what stood in the gate's place, over all queries; without gates the factor
  double bos_mass = 0;   ///< weight of key 0, over the queries that predict the targets
  double n_eff = 0;      ///< over the same queries

  friend bool operator==(const GateArmReading&, const GateArmReading&) = default;
};

/// What calibration text says of one head. Means are over the dimensions of a head too.
struct CalibratedHead {
  std::int64_t layer = 0;
  std::int64_t head = 0;
  double raw_mean = 0;           ///< of K with lambda = 1
  std::optional<double> gate;    ///< mean of the gate; none: the model has no gates
  std::optional<double> lambda;  ///< of K'; none: no gates, or no solution
  std::optional<double> gain;    ///< mean of K', from a pass of its own; none as for `lambda`
  std::optional<double> scale;   ///< c of the scaled gain; none: no gates

  friend bool operator==(const CalibratedHead&, const CalibratedHead&) = default;
};

/// A finished run.
struct GateArmsRun {
  Json request = Json::object();
  std::vector<std::string> arms;                                   ///< "native" first
  std::vector<std::int64_t> contexts;                              ///< tokens, ascending
  std::int64_t trained_length = 0;                                 ///< one of them
  bool gated = false;                                              ///< whether the model has gates
  std::vector<CalibratedHead> calibration;                         ///< layer by layer
  std::vector<std::vector<std::vector<GateArmReading>>> readings;  ///< [arm][document][context]

  std::size_t documents() const { return readings.empty() ? 0 : readings.front().size(); }
};

Json to_json(const std::vector<GateArmReading>& contexts);
/// @throws InvalidArgument, Json::exception  another form, or a number that is not finite
std::vector<GateArmReading> readings_from(const Json& json, std::size_t contexts);
Json to_json(const std::vector<CalibratedHead>& heads);
/// @throws InvalidArgument, Json::exception  as above
std::vector<CalibratedHead> calibration_from(const Json& json);

/// Names of units in a RunStore: the calibration, and one arm on one document.
inline constexpr const char* calibration_unit = "calibration";
std::string gate_arm_unit(std::size_t document, std::string_view arm);

/// What `gate-arms.json` holds.
Json to_json(const GateArmsRun& run);
/// Writes `gate-arms.json` of a run folder as store_result().
void write_gate_arms_run(const std::filesystem::path& folder, const GateArmsRun& run);
/// Reads a finished run.
/// @throws InvalidArgument  as read_result()
GateArmsRun read_gate_arms_run(const std::filesystem::path& folder, Proof proof = Proof::by_reader);

}  // namespace gainlens::runfile
