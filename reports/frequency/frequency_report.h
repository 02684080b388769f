#pragma once

#include "analyses/frequency_reading.h"
#include "reports/figures/figure.h"
#include "reports/made_report.h"

#include <filesystem>
#include <span>
#include <string>

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

}  // namespace gainlens::reports
