#pragma once

#include "analyses/frequency_reading.h"
#include "reports/figures/figure.h"
#include "reports/made_report.h"
#include "reports/page/table.h"

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace gainlens::reports {

/// What the report of `gainlens k-by-frequency` is about: one arm.
struct ReadFrequency {
  const analyses::FrequencyReading* reading;

  std::string label() const { return reading->arm; }
};

/// K and lambda of bins of items against their mean training count: a row of two panels for each layer, arms and
/// their placebos laid over each other. Missing with more curves than can be told apart.
/// @param arms  at least one; of one data set
Maybe<Figure> frequency_figure(std::span<const ReadFrequency> arms);

/// Writes the report of `gainlens k-by-frequency` into `out`: see write_files().
/// @param readings  at least one, of different arms
/// @throws InvalidArgument, RunFailed  see write_files()
WrittenReport write_frequency_report(std::span<const analyses::FrequencyReading> readings,
                                     const std::filesystem::path& out);

/// The trend of each quantity of each layer.
Table frequency_table(const analyses::FrequencyReading& reading);

/// The trends of the placebos, and the difference to each. Without placebos it has no rows.
Table frequency_placebo_table(const analyses::FrequencyReading& reading);

/// What was read: "arm bft, seed 0: 40 users, 400 positions", and the items.
std::vector<std::string> frequency_lead(const analyses::FrequencyReading& reading);

/// What the intervals say: a sentence for each quantity, each followed by those on its placebos.
std::vector<std::string> frequency_sentences(const analyses::FrequencyReading& reading);

/// What the columns mean, and what they cannot show.
std::vector<std::string> frequency_notes(const analyses::FrequencyReading& reading);

/// The result for one arm as text for a terminal, ended by a line break. For programs: analyses::to_json().
std::string print_frequency(const analyses::FrequencyReading& reading);

}  // namespace gainlens::reports
