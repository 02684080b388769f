#pragma once

#include "analyses/sink_keys.h"
#include "analyses/sink_vs_k.h"
#include "reports/page/csv_table.h"

#include <string>

namespace gainlens::reports {

/// The sinks as text for a terminal, ended by a line break: for each printed length the share of attention that they
/// take, by token class and by layer, and a line for each group of sinks. Printed are the longest length and 64 tokens,
/// or every length. For programs: analyses::to_json().
/// @param every_length  print each of SinkKeys::lengths
std::string print_sinks(const analyses::SinkKeys& sinks, const runfile::RunReader& reader, bool every_length);

/// One row for each key, with all that the run knows of it. Texts as printable() makes them.
CsvTable sinks_csv(const analyses::SinkKeys& sinks);

/// The result as a text table for a terminal, ended by a line break. For programs: analyses::to_json().
std::string print_sink_vs_k(const analyses::SinkVsK& result);

}  // namespace gainlens::reports
