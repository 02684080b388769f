#pragma once

#include "core/listener.h"

#include <memory>
#include <string>
#include <string_view>

namespace gainlens {

/// Tells the listener of this process how long work goes on.
class Progress {
 public:
  /// @param cost   in any unit that is roughly proportional to time
  /// @param unit   what the amounts of advance() count, e.g. "tokens"
  /// @param quiet  nobody is told
  Progress(std::string title, double cost, std::string unit, bool quiet = false) {
    if (Listener* const told = quiet ? nullptr : listener())
      work_ = told->begun({std::move(title), cost, std::move(unit)});
  }

  /// One step is done. `label` names the step.
  void advance(double cost, double amount, std::string_view label) {
    if (work_) work_->advanced(cost, amount, label);
  }
  /// Takes work out of the total that need not be done: it was done by an earlier call, or the rest ended early.
  void skip(double cost, std::string_view label) {
    if (work_) work_->skipped(cost, label);
  }
  /// Ends the work; the destructor does too.
  void finish() { work_.reset(); }

 private:
  std::unique_ptr<WorkListener> work_;
};

}  // namespace gainlens
