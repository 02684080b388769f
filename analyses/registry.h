#pragma once

#include "analyses/options.h"
#include "core/json.h"
#include "runfile/run_reader.h"

#include <span>
#include <string_view>

namespace gainlens::analyses {

/// An analysis of a sweep, by name.
struct Analysis {
  std::string_view name;
  std::string_view summary;  ///< one line: the question it answers
  OrderedJson (*run)(const runfile::RunReader& reader, const Options& options);
};

/// Every analysis of sweeps, in the order of a report.
std::span<const Analysis> registry();

/// @throws InvalidArgument  no such analysis (nearest match named)
const Analysis& find_analysis(std::string_view name);

}  // namespace gainlens::analyses
