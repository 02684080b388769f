#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// The file depth.json of a sweep's run folder: what `gainlens sweep --depth-precision` measures
// (docs/analyses/depth.md).

namespace gainlens::runfile {

inline constexpr std::string_view depth_format = "gainlens-depth";
inline constexpr std::int64_t depth_version = 2;  ///< 1 had drawn errors in DepthTruth::rule_error
inline constexpr const char* depth_file = "depth.json";

/// Shares of the stored quantiles.
inline constexpr std::array<double, 5> depth_shares = {0.05, 0.25, 0.5, 0.75, 0.95};
inline constexpr std::size_t depth_median = 2;  ///< its place among them
/// Factors on the variance of the embedding: the first precision is chosen, not measured.
inline constexpr std::array<double, 3> depth_starts = {0.1, 1, 10};
inline constexpr std::size_t depth_start = 1;  ///< place of the factor 1

/// What attention's estimate does to the variance P of the stream, O being that of the estimate.
enum class DepthReading {
  filter,    ///< P' = P O / (P + O): two measurements of one quantity are joined
  gain_one,  ///< P' = P + O: h' = h + o with independent errors
};
inline constexpr std::array<std::string_view, 2> depth_readings = {"filter", "gain-one"};

/// At depth_shares, over coordinates and queries.
using DepthQuantiles = std::array<double, depth_shares.size()>;
/// [reading][start]
using DepthCarried = std::array<std::array<DepthQuantiles, depth_starts.size()>, depth_readings.size()>;

/// What stands beside the rules. Quantiles over coordinates; each coordinate is a mean over queries, and of drawn
/// errors over draws too.
struct DepthTruth {
  DepthQuantiles rule_error;     ///< rule / whole Jacobian - 1, of the variance after the MLP
  DepthQuantiles sum_ratio;      ///< variance of the perturbed stream / P of gain-one, after the layer
  DepthQuantiles carried_ratio;  ///< the same over P0 carried through the MLPs alone, without what attention adds

  friend bool operator==(const DepthTruth&, const DepthTruth&) = default;
};

/// One layer on one chunk. Variances are in the square of the unit of the stream.
struct DepthLayer {
  std::int64_t layer = 0;
  DepthCarried variance = {};            ///< P that enters the layer
  DepthCarried gain = {};                ///< K = P / (P + O)
  DepthQuantiles observed = {};          ///< O, heads independent
  DepthQuantiles bound = {};             ///< O if all heads and dimensions err together
  DepthQuantiles jacobian = {};          ///< J, diagonal of the Jacobian of the MLP through its norms
  std::optional<DepthTruth> truth = {};  ///< of the first chunk of each length

  friend bool operator==(const DepthLayer&, const DepthLayer&) = default;
};

struct DepthChunk {
  std::int64_t length = 0;
  std::int64_t sample = 0;
  std::int64_t queries = 0;        ///< that were measured, in the last quarter
  std::vector<DepthLayer> layers;  ///< from layer 0 on
  DepthCarried last = {};          ///< P after the last of them

  friend bool operator==(const DepthChunk&, const DepthChunk&) = default;
};

struct DepthRun {
  std::string request;  ///< sha256 of the request.json of the sweep
  std::vector<DepthChunk> chunks;

  friend bool operator==(const DepthRun&, const DepthRun&) = default;
};

/// Writes depth.json of a run folder, and its checksum, as write_with_checksum(). The same run gives the same bytes.
void write_depth_run(const std::filesystem::path& folder, const DepthRun& run);
/// Reads it; nothing: the folder has none.
/// @throws InvalidArgument  it differs from the checksum beside it; damaged, another version, a number that is not
/// finite, layers that differ between chunks
std::optional<DepthRun> read_depth_run(const std::filesystem::path& folder);

}  // namespace gainlens::runfile
