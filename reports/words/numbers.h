#pragma once

#include "analyses/cells.h"
#include "analyses/context.h"
#include "core/counted.h"
#include "core/number_ranges.h"
#include "reports/measured.h"

#include <cstdint>
#include <string>
#include <vector>

namespace gainlens::reports {

/// Numbers as readers see them: three significant digits, a dash where there is none.
std::string shown(double number);
std::string shown(const Measured& value);
/// Two significant digits.
std::string shown_p(const Measured& p);
/// A value with its sign and three decimals.
std::string shown_signed(const Measured& value);
/// "12.4%": a share.
std::string shown_percent(const Measured& share);
/// "[0.12, 0.34]"; empty where there is none.
std::string shown(const Maybe<Interval>& interval);
/// "0.23 [0.12, 0.34]"
std::string shown(const Maybe<analyses::Aggregate>& aggregate);
std::string shown(const analyses::Change& change);
std::string with_interval(const std::string& value, const Maybe<Interval>& interval);

/// The first twelve digits of a checksum; the whole one is in summary.json.
std::string short_checksum(const std::string& checksum);

/// "+0.123 [+0.045, +0.201]"; a dash for what is missing.
std::string with_signed_interval(const Measured& value, const Maybe<Interval>& interval);

/// "layer 3", "layers 0-3, 7".
std::string layers_in_words(const std::vector<std::int64_t>& layers);

}  // namespace gainlens::reports
