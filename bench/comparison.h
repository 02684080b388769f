#pragma once

#include "bench/attention_case.h"
#include "bench/methods.h"
#include "bench/timing.h"
#include "core/json.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::bench {

/// Where numbers come from.
struct Machine {
  std::string processor;
  std::string instructions;  ///< the widest that libtorch uses: AVX2, AVX512, ...
  std::string libtorch;      ///< version
  std::int64_t threads = 0;
};
Machine this_machine();

struct MethodResult {
  std::string name;
  std::optional<RunTimes> times;
  std::string reason;           ///< why there are no times
  double operations = 0;        ///< of one run
  std::int64_t peak_bytes = 0;  ///< beyond the inputs: workspace, result, temporaries, mask

  double operations_per_second() const { return operations / times->median; }
};

struct CaseResult {
  AttentionCase shape;
  std::vector<MethodResult> methods;

  /// Null where it was not measured or could not run.
  const MethodResult* measured(std::string_view name) const;
  /// Median time of a method over that of SDPA; empty where one is missing.
  std::optional<double> ratio_to_sdpa(std::string_view name) const;
};

struct Comparison {
  Machine machine;
  std::optional<double> copy_rate;  ///< bytes read and written per second by a copy
  std::vector<CaseResult> cases;
};

/// Runs every method once, counting memory, and then in turn by the clock. A backend that this build lacks is left out
/// with the reason.
CaseResult compare_methods(const AttentionCase& shape, const MethodChoice& choice, const RunBudget& budget);

OrderedJson to_json(const Machine& machine);
OrderedJson to_json(const Comparison& comparison);

/// @param where  names the file in messages
/// @throws InvalidArgument  a member is missing or of another type than to_json writes
Comparison comparison_of(const Json& json, std::string_view where);

}  // namespace gainlens::bench
