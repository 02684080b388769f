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

/// The machine on which the numbers were measured.
struct Machine {
  std::string processor;
  std::string instructions;  ///< the widest instruction set that libtorch uses: AVX2, AVX512, ...
  std::string libtorch;      ///< version
  std::int64_t threads = 0;
};
Machine this_machine();

struct MethodResult {
  std::string name;
  std::optional<RunTimes> times;
  std::string reason;           ///< why `times` is empty
  double operations = 0;        ///< of one run
  std::int64_t peak_bytes = 0;  ///< in addition to the inputs: workspace, result, temporaries, mask

  double operations_per_second() const { return operations / times->median; }
};

struct CaseResult {
  AttentionCase shape;
  std::vector<MethodResult> methods;

  /// Null if the method was not measured or could not run.
  const MethodResult* measured(std::string_view name) const;
  /// Median time of a method divided by that of SDPA; empty if one of the two is missing.
  std::optional<double> ratio_to_sdpa(std::string_view name) const;
};

struct Comparison {
  Machine machine;
  std::optional<double> copy_rate;  ///< bytes read and written per second by a copy
  std::vector<CaseResult> cases;
};

/// Runs every method once to count its memory. Then runs the methods in turn to measure their times. If this build
/// lacks the composed backend, its result has the reason instead.
CaseResult compare_methods(const AttentionCase& shape, const MethodChoice& choice, const RunBudget& budget);

OrderedJson to_json(const Machine& machine);
OrderedJson to_json(const Comparison& comparison);

/// @param where  names the file in messages
/// @throws InvalidArgument  a member is missing or of another type than to_json writes
Comparison comparison_of(const Json& json, std::string_view where);

}  // namespace gainlens::bench
