#pragma once

#include "analyses/item_frequency.h"
#include "core/json.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gainlens::analyses {

/// The models of an arm, with the same positions.
struct FilteredArm {
  std::string name;
  std::vector<std::uint64_t> seeds;
  std::vector<FilteredPositions> models;  ///< [seed]
};

/// What `gainlens k-by-frequency` prints, as the paper does for one layer of one model.
struct PaperFrequency {
  double gain, precision;  ///< rho
  std::string_view where;
};
/// Source: bft.tex, Figure k-distribution-sports.
inline constexpr PaperFrequency paper_frequency = {0.126, -0.082, "SASRec+BFT, Sports, the second of two layers"};

/// K or lambda of one layer against frequency.
struct FrequencyQuantity {
  std::vector<FrequencyCorrelation> seeds;
  SeedFrequency mean;
  std::vector<FrequencyBin> bins;  ///< of the mean over seeds
  struct Placebo {
    SeedFrequency mean;
    FrequencyDifference difference;  ///< of the model to it
    std::vector<FrequencyBin> bins;  ///< of the mean over seeds
  };
  std::vector<Placebo> placebos;  ///< in the order of FrequencyReading::placebos
};

struct FrequencyReading {
  struct Layer {
    FrequencyQuantity gain, precision;
  };
  std::string arm;
  std::vector<std::string> placebos;  ///< names
  std::vector<std::uint64_t> seeds;
  std::size_t items_of_catalogue, items, users, positions;  ///< items: with a position
  FrequencyOptions options;
  std::vector<Layer> layers;
};

/// @param placebos  each with the seeds of the arm
/// @param counts    [item] training counts
/// @throws InvalidArgument  the models differ in their positions or layers; no position; as frequency_correlations()
FrequencyReading frequency_reading(const FilteredArm& arm, std::span<const FilteredArm> placebos,
                                   std::span<const double> counts, const FrequencyOptions& options);

OrderedJson to_json(const FrequencyReading& reading);

}  // namespace gainlens::analyses
