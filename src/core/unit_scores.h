#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens {

// Every training of an experiment is evaluated on the same units: users, questions, documents. What it is worth is a
// score of each unit, and its metric is their mean.

/// A score that every unit gets in every training.
struct UnitScore {
  std::string name;              ///< "loss"
  bool higher_is_better = true;  ///< else lower is
  std::string measure = "1";     ///< the unit of measurement: "nats"; 1: none

  bool operator==(const UnitScore&) const = default;
};

/// The metric of a training: the mean over its units. The sum is in double, from the first unit to the last.
/// @param scores  [unit] at least one
double mean_score(std::span<const double> scores);

/// Whether a unit can be called so: lower-case letters, 20 at most. Its plural ends in -s.
bool is_unit_noun(std::string_view noun);
/// Whether a score, a metric or a curve can have this name, which names a dataset of a run file: letters, digits, '-',
/// '_', '.', '+' and '@', the first one a letter or a digit, 60 at most.
bool is_score_name(std::string_view name);

}  // namespace gainlens
