#pragma once

#include "analyses/error_order.h"
#include "reports/figures/figure.h"
#include "reports/made_report.h"
#include "reports/page/table.h"

#include <filesystem>
#include <span>
#include <string>
#include <vector>

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

/// How the precision and its rivals order users: by the rank of the test item, and by whether it is among the first 10.
std::vector<Table> error_order_tables(const analyses::ErrorOrderReading& reading);

/// What was read: "arm bft, seed 0: 200 users with 50 different test items", and the precision.
std::vector<std::string> error_order_lead(const analyses::ErrorOrderReading& reading);

/// What the intervals of the ranks say.
std::vector<std::string> error_order_sentences(const analyses::ErrorOrderReading& reading);

/// What the columns mean.
std::vector<std::string> error_order_notes(const analyses::ErrorOrderReading& reading);

/// What `gainlens error-by-precision` prints of an arm.
std::string print_error_order(const analyses::ErrorOrderReading& reading);

}  // namespace gainlens::reports
