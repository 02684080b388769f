#pragma once

#include "analyses/measured.h"
#include "analyses/options.h"
#include "runfile/run_reader.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::analyses {

/// A property in which two runs differ, and what this means for their numbers.
struct RunDifference {
  std::string_view what;  ///< "text", "BOS", ...
  std::string first;      ///< the property in the first run
  std::string second;
  std::string consequence;  ///< a sentence
  bool unpairs;             ///< if chunks of the two runs do not hold the same tokens
};

/// A quantity compared between runs: a mean over the cells of each chunk.
struct ComparedQuantity {
  std::string_view name;   ///< dataset, or "sink_share", "sink_mass"
  std::string_view label;  ///< as reports show it
  std::string_view unit;   ///< "1" for pure numbers; "value" is the unit of the value vectors
  std::string_view where;  ///< layers and queries of the mean

  /// The largest possible value. The smallest one is 0 of every quantity.
  double most() const { return unit == "1" ? 1 : std::numeric_limits<double>::infinity(); }
};
/// n_eff, entropy, observation_precision, kalman_gain, kalman_gain_scaled, gate, bos_mass, sink_share,
/// sink_mass, nll.
const std::vector<ComparedQuantity>& compared_quantities();

/// One quantity of two runs at one context length.
struct PairedDifference {
  ComparedQuantity quantity;
  Measured first;  ///< mean over the chunks that both runs have; if chunks are not paired, over all chunks of the run
  Measured second;
  Measured difference;       ///< second - first, mean over paired chunks
  Maybe<Interval> interval;  ///< Student interval of the difference, from chunks
  std::size_t pairs;
};

/// A context length that both runs have.
struct ComparedLength {
  std::int64_t tokens;
  std::vector<PairedDifference> quantities;  ///< as compared_quantities()
};

/// One head of both runs at one context length.
struct HeadDifference {
  std::int64_t tokens;
  std::int64_t layer;  ///< the model's own number
  std::int64_t head;
  std::vector<PairedDifference> quantities;  ///< of compared_head_quantities, in that order
};
inline constexpr std::array<std::string_view, 5> compared_head_quantities = {"bos_mass", "sink_mass", "n_eff",
                                                                             "kalman_gain", "entropy"};

/// How do two runs differ? They are compared chunk by chunk if the same length and sample number hold the same tokens
/// in both. Otherwise the values are given without a difference, and with the reason.
struct Comparison {
  std::vector<RunDifference> differences;
  /// Why no numbers are compared: the statistics have different versions, or no layer was measured in both runs. Empty
  /// if they are.
  std::string refused;
  std::string unpaired;  ///< why chunks are not paired; empty if they are
  /// The model's own numbers of the layers that are compared, if compares_shared_layers(); else empty.
  std::vector<std::int64_t> shared_layers;
  std::vector<ComparedLength> lengths;
  std::vector<HeadDifference> heads;     ///< by length, layer, head
  std::string no_heads;                  ///< why heads are not compared one by one; empty if they are
  std::vector<std::int64_t> only_first;  ///< context lengths, in tokens, with a complete chunk in the first run only
  std::vector<std::int64_t> only_second;
  std::vector<std::string> caveats;
};

/// @throws InvalidArgument  both runs hold the same request, and so the same numbers
void check_different(const runfile::RunReader& first, const runfile::RunReader& second);
/// @throws InvalidArgument  see check_different(), deep_layers() and usable_lengths()
Comparison compare(const runfile::RunReader& first, const runfile::RunReader& second, const Options& options = {});
OrderedJson to_json(const Comparison& comparison);
OrderedJson to_json(const PairedDifference& compared);

/// Whether only the layers that both runs measured are compared: their layers differ, and one of the runs holds a part
/// of its model (both are of one model, or a run does not begin at layer 0). Otherwise the models may have different
/// depths, and the deep layers of each run are counted among its own layers.
bool compares_shared_layers(const runfile::Request& first, const runfile::Request& second);

/// The properties in which two requests differ. Lengths and samples are not listed: what both runs have is compared.
std::vector<RunDifference> request_differences(const runfile::Request& first, const runfile::Request& second);

}  // namespace gainlens::analyses
