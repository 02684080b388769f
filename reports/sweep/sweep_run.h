#pragma once

#include "analyses/options.h"
#include "runfile/run_proof.h"
#include "runfile/run_reader.h"

#include <map>
#include <memory>
#include <span>
#include <string>

namespace gainlens::reports {

/// A run that a report is asked for.
struct RunInput {
  std::string label;  ///< what it is called among several
  const runfile::RunReader& reader;
  runfile::RunProof proof = {};
};

/// A sweep and the results of its analyses. An analysis runs when a section first asks for it, and once.
class SweepRun {
 public:
  /// @param first  the run that this one is compared with; null for the first of a report. Must outlive this one, as
  ///     the reader must
  SweepRun(const RunInput& run, const analyses::Options& options, const SweepRun* first = nullptr)
      : run_(run), options_(options), first_(first) {}

  const std::string& label() const { return run_.label; }
  const runfile::RunReader& reader() const { return run_.reader; }
  const runfile::Request& request() const { return run_.reader.request(); }
  const runfile::RunProof& proof() const { return run_.proof; }
  const analyses::Options& options() const { return options_; }
  const SweepRun* first() const { return first_; }

  /// The result of an analysis of this run: `run.of(analyses::context)`. Throws as the analysis does.
  template <typename Result>
  const Result& of(Result (*analysis)(const runfile::RunReader&, const analyses::Options&)) const {
    return once<Result>(reinterpret_cast<Key>(analysis), [&] { return analysis(run_.reader, options_); });
  }
  /// What a section derives from such results.
  template <typename Result>
  const Result& of(Result (*derived)(const SweepRun&)) const {
    return once<Result>(reinterpret_cast<Key>(derived), [&] { return derived(*this); });
  }

 private:
  using Key = void (*)();

  template <typename Result, typename Compute>
  const Result& once(Key key, Compute compute) const {
    std::shared_ptr<const void>& place = results_[key];
    if (!place) place = std::make_shared<const Result>(compute());
    return *static_cast<const Result*>(place.get());
  }

  RunInput run_;
  analyses::Options options_;
  const SweepRun* first_;
  mutable std::map<Key, std::shared_ptr<const void>> results_;
};

/// The runs of a report, overlaid in figures in this order.
using Runs = std::span<const SweepRun>;

}  // namespace gainlens::reports
