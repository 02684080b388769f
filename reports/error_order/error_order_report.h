#pragma once

#include "analyses/error_order.h"
#include "reports/figures/figure.h"
#include "reports/made_report.h"

#include <filesystem>
#include <span>
#include <string>

namespace gainlens::reports {

/// What the report of `gainlens error-by-precision` is about: one arm.
struct ReadErrorOrder {
  const analyses::ErrorOrderReading* reading;

  std::string label() const { return reading->arm; }
};

/// HR@10 and NDCG@10 of users by their place by the precision, with intervals, and by each rival: a row of two panels
/// for each arm. Missing with more arms than fit.
/// @param arms  at least one
Maybe<Figure> error_order_figure(std::span<const ReadErrorOrder> arms);

/// Writes the report of `gainlens error-by-precision` into `out`: see write_files().
/// @param readings  at least one, of different arms
/// @throws InvalidArgument, RunFailed  see write_files()
WrittenReport write_error_order_report(std::span<const analyses::ErrorOrderReading> readings,
                                       const std::filesystem::path& out);

}  // namespace gainlens::reports
