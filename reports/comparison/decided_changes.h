#pragma once

#include "analyses/gain_decisions.h"
#include "analyses/seed_unit.h"
#include "core/error.h"
#include "reports/measured.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Words of pages that compare arms, whatever their units are.
namespace gainlens::reports {

/// A row of a table of decisions.
struct DecidedChange {
  std::string title;   ///< of its comparison; rows of one comparison follow each other
  std::string metric;  ///< title
  analyses::GainDecision decision;
};

/// Who wins, in a few sentences.
std::string answer_in_words(std::span<const DecidedChange> changes);

/// What the numbers of seeds of some comparisons mean, each sentence once.
/// @param unit  what a unit is called
std::vector<std::string> notes_on_few_seeds(std::span<const std::size_t> seeds, std::string_view unit);

/// The last sentences of a table's caption: what Holm's p and the naive p are, and what "not shown" means.
/// @param units  "users"
std::string decisions_in_words(std::span<const DecidedChange> changes, std::string_view units);

/// "95% interval" if every comparison has seeds enough, otherwise "interval", and each cell says which kind.
std::string interval_heading(std::span<const std::size_t> seeds);
/// The kind of an interval, for programs: "95%, seeds and users", "range without a level" or "95%, users alone"; empty
/// without an estimate.
std::string interval_kind(const Maybe<analyses::CrossedEstimate>& estimate);

/// The name that all have; else `otherwise`.
std::string common_name(std::span<const std::string> names, std::string_view otherwise);

/// The common name of compared things, each with a `comparison`; else `otherwise`.
/// @param name  a member of these comparisons
template <typename Compared, typename Comparison>
std::string common_name(std::span<const Compared> all, std::string Comparison::*name, std::string_view otherwise) {
  std::vector<std::string> names;
  for (const Compared& one : all) names.push_back(one.comparison.*name);
  return common_name(names, otherwise);
}
/// The number of seeds of each.
template <typename Compared>
std::vector<std::size_t> seed_counts(std::span<const Compared> all) {
  std::vector<std::size_t> counts;
  for (const Compared& one : all) counts.push_back(one.comparison.baseline_seeds.size());
  return counts;
}

/// The title of a page of comparisons: "bft against plain on wiki – gainlens".
/// @param pairs      "bft against plain" of each
/// @param data_sets  of each
std::string comparisons_title(std::span<const std::string> pairs, std::span<const std::string> data_sets);
/// The same of comparisons with candidate, baseline and data set.
template <typename Comparison>
std::string comparisons_title(std::span<const Comparison> comparisons) {
  std::vector<std::string> pairs, data_sets;
  for (const Comparison& one : comparisons) {
    pairs.push_back(one.candidate + " against " + one.baseline);
    data_sets.push_back(printable(one.data_set, 60));
  }
  return comparisons_title(std::span<const std::string>(pairs), std::span<const std::string>(data_sets));
}

/// What such a page does not say. @param unit  what a unit is called
std::vector<std::string> comparison_notes(std::string_view unit);

/// What the forest of a page must not be read as.
inline constexpr const char* forest_cannot =
    "An interval that holds 0 does not show that two arms are equally good. The intervals of two candidates may "
    "overlap although the candidates differ: compare these two arms themselves.";

}  // namespace gainlens::reports
