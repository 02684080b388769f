#pragma once

#include "analyses/error_order.h"
#include "reports/page/table.h"

#include <string>
#include <vector>

namespace gainlens::reports {

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
