#pragma once

#include "analyses/measured.h"
#include "analyses/options.h"
#include "runfile/run_reader.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::analyses {

/// Something two runs do not share, and what follows for their numbers.
struct RunDifference {
  std::string_view what;  ///< "text", "BOS", ...
  std::string first;      ///< as it is in the first run
  std::string second;
  std::string consequence;  ///< a sentence
  bool unpairs;             ///< chunks of the two runs do not hold the same tokens
};

/// A mean over the cells of a chunk that is compared between runs.
struct ComparedQuantity {
  std::string_view name;   ///< dataset, or "sink_share"
  std::string_view unit;   ///< "1" for pure numbers; "values" where it depends on the scale of a model's own values
  std::string_view where;  ///< layers and queries it is averaged over
};
/// n_eff, entropy, observation_precision, kalman_gain, kalman_gain_scaled, gate, bos_mass, sink_share, nll.
const std::vector<ComparedQuantity>& compared_quantities();

/// One quantity of two runs at one context length.
struct PairedDifference {
  ComparedQuantity quantity;
  Measured first;  ///< mean over the chunks that both runs have; where chunks are not paired, over all of each run
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

/// How do two runs differ? Chunk by chunk where equal numbers of length and sample stand for the same tokens; otherwise
/// the values stand side by side without a difference, and the reason is given.
struct Comparison {
  std::vector<RunDifference> differences;
  std::string refused;   ///< why no numbers are compared at all: the runs' statistics have different versions; empty
                         ///< where they are compared
  std::string unpaired;  ///< why chunks are not paired; empty where they are
  std::vector<ComparedLength> lengths;
  std::vector<std::int64_t> only_first;  ///< context lengths, in tokens, with a complete chunk in one of the two
  std::vector<std::int64_t> only_second;
  std::vector<std::string> caveats;
};

/// @throws InvalidArgument  both hold the same request, and so the same numbers
void check_different(const runfile::RunReader& first, const runfile::RunReader& second);
/// @throws InvalidArgument  see check_different(), deep_layers() and usable_lengths()
Comparison compare(const runfile::RunReader& first, const runfile::RunReader& second, const Options& options = {});
OrderedJson to_json(const Comparison& comparison);

/// What two requests do not share. Lengths and samples are no difference: what both have is compared.
std::vector<RunDifference> request_differences(const runfile::Request& first, const runfile::Request& second);

}  // namespace gainlens::analyses
