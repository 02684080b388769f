#pragma once

#include "analyses/cells.h"
#include "analyses/context.h"
#include "reports/measured.h"

#include <string>

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

}  // namespace gainlens::reports
