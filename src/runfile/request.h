#pragma once

#include "core/estimator.h"
#include "core/json.h"
#include "runfile/shard.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::runfile {

/// Version of the numbers that this program computes. It is raised when a stored number changes its meaning or its
/// bits, or when a number is added. A run of another version is not resumed. Runs of lower versions can be read.
/// - Version 2 added the norms of the estimate, the sink bound, min_norm and variance.
/// - Since version 3 the error of sums does not grow with the length, and scaled K works for values of any size.
/// - Version 4 added /sinks and /stream: the keys that take most attention, wherever they are.
inline constexpr std::int64_t statistics_version = 4;

/// What is measured, and of which model. It determines the datasets of a run and their shapes. A sweep derives all of
/// it from the model's attention layout (sweep/measured_model.h).
struct MeasuredModel {
  std::string family;
  std::vector<std::int64_t> layers;  ///< original indices, in order
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;  ///< of the axis kv_head: if layers differ, the largest number
  /// [layer of `layers`] KV heads of the layer, each a divisor of kv_heads. On the axis kv_head each of them stands
  /// kv_heads / own times in a row. JSON has this key only if some layer has fewer than kv_heads, so older requests,
  /// which do not know it, are read and written unchanged.
  std::vector<std::int64_t> layer_kv_heads;
  std::int64_t head_dim = 0;
  std::int64_t max_positions = 0;
  std::vector<std::string> attention;  ///< per layer of `layers`: "global" or "window:512"
  bool gated = false;
  bool sink_logits = false;
  /// Whether the model is a Bayesian filter (BFT). JSON has this key only if it is, so older requests, which do not
  /// know it, are read and written unchanged.
  bool filtered = false;
};

/// "1 KV head", "8 KV heads", or "2 or 4 KV heads" where layers differ.
std::string kv_heads_in_words(const MeasuredModel& model);

/// Names of the inputs of a sweep, for messages. They are not part of its request.
struct InputNames {
  std::string model;
  std::string text;  ///< or of the file of token ids
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
  /// Number of tokens of the text over which the chunks of each length are spread evenly. Absent: the chunks are
  /// consecutive from the start of the text, and JSON has no such key, so older requests, which do not know it, are
  /// read and written unchanged.
  std::optional<std::int64_t> spread;
  /// Of lambda_obs and K. JSON has the keys `estimator` and `score_noise` only if it is not reml, so older requests,
  /// which do not know them, are read and written unchanged.
  ChosenEstimator estimator;
  /// Keys of config.json that were not read (--ignore-config-key), sorted. JSON has no such key if there are none, so
  /// older requests, which do not know it, are read and written unchanged.
  std::vector<std::string> ignored_config_keys;
  std::optional<std::int64_t> bos;  ///< token put before each chunk; absent: none
  std::string bos_policy;           ///< auto|always|never and its effect, in words
  std::string dtype;                ///< compute dtype: float64 float32 bfloat16 float16
  /// "cpu" or "cuda". If the kernel of the statistics is not the default one of the device, its name follows:
  /// "cpu:composed".
  std::string device;
  std::int64_t threads = 0;  ///< per process
  bool nll = true;
  bool statistics = true;
  bool per_query = false;
  bool allow_extrapolation = false;

  Json to_json() const;
  /// @throws InvalidArgument  a key is missing, unknown or of the wrong type
  static Request from_json(const Json& json, std::string_view where);
  /// @throws InvalidArgument  a field out of range, or fields that contradict each other
  void validate(std::string_view where) const;

  /// Empty if `other` asks for the same numbers, apart from lengths and samples. Otherwise one line that names the
  /// first difference and both values: the option of `gainlens sweep` where one decides the field. The model and the
  /// text are compared before options. Nested requests must also have the same longest length, because the shorter
  /// chunks are cut from it. Spread requests must also have the same number of samples, because it decides where every
  /// chunk lies.
  /// @param stored_names, names  of the inputs of this request and of `other`; used where model or text differ
  std::string difference(const Request& other, const InputNames& stored_names = {}, const InputNames& names = {}) const;
  /// The union of the lengths, and the larger number of samples. Requires difference(other).empty().
  Request united(const Request& other) const;
  bool covers(const Request& other) const;
  /// Whether the chunk is one of this request.
  bool holds(const ShardKey& key) const;
};

}  // namespace gainlens::runfile
