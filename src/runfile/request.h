#pragma once

#include "core/json.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::runfile {

/// Of the numbers that this program computes. Raised whenever a stored number changes meaning or bits, or one joins; a
/// run of another version is not resumed. Runs of lower versions can be read. 2: norms of the estimate and the sink
/// bound, min_norm, variance. 3: sums whose error does not grow with the length, scaled K of values of any size.
inline constexpr std::int64_t statistics_version = 3;

/// What is measured of which model: with it the datasets of a run and their shapes are known. A sweep derives it whole
/// from the model's attention layout (sweep/measured_model.h).
struct MeasuredModel {
  std::string family;
  std::vector<std::int64_t> layers;  ///< original indices, in order
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t max_positions = 0;
  std::vector<std::string> attention;  ///< per layer of `layers`: "global" or "window:512"
  bool gated = false;
  bool sink_logits = false;
};

/// What determines the numbers of a sweep, and nothing else (no paths, no times).
struct Request : MeasuredModel {
  std::int64_t version = statistics_version;  ///< of the statistics
  std::map<std::string, std::string> model;   ///< file name -> sha256, for config.json and each weight file
  std::string tokenizer;                      ///< sha256 of its files, or "tokens" where ids were given
  std::string text;                           ///< sha256 of the text (uncompressed) or of the ids
  std::vector<std::int64_t> lengths;          ///< sorted
  std::int64_t samples = 0;
  bool nested = false;
  /// Tokens of the text that the chunks of each length are spread evenly over; absent: consecutive from its head, and
  /// no key in JSON, so that requests from before there was a choice read and write as they are.
  std::optional<std::int64_t> spread;
  std::optional<std::int64_t> bos;  ///< token put before each chunk; absent: none
  std::string bos_policy;           ///< auto|always|never and what it led to, in words
  std::string dtype;                ///< compute dtype: float64 float32 bfloat16 float16
  std::string device;  ///< "cpu" or "cuda", each with the kernel of its statistics where it is not the device's own:
                       ///< "cpu:composed"
  std::int64_t threads = 0;  ///< per process
  bool nll = true;
  bool statistics = true;
  bool per_query = false;
  bool allow_extrapolation = false;

  Json to_json() const;
  /// @throws InvalidArgument  a missing, surplus or mistyped key
  static Request from_json(const Json& json, std::string_view where);
  /// @throws InvalidArgument  a field out of range, or fields that contradict each other
  void validate(std::string_view where) const;

  /// Empty if `other` asks for the same numbers up to lengths and samples; else one line naming the first difference
  /// and both values. Nested requests must agree on the longest length too: their shorter chunks are cut from it.
  /// Spread ones must agree on the samples: the place of every chunk follows from their number.
  std::string difference(const Request& other) const;
  /// Lengths united, samples the larger. Requires difference(other).empty().
  Request united(const Request& other) const;
  bool covers(const Request& other) const;
};

}  // namespace gainlens::runfile
