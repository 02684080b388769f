#pragma once

#include "analyses/checks/training_checks.h"

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

/// What is checked of trainings whatever they predict.
namespace gainlens::analyses::training_checks {

/// Trainings that have a fault, by arm: "bft seeds 0-2; plain seed 1".
class Faulty {
 public:
  using Fault = std::function<bool(const runfile::TrainedSeed*)>;  ///< null: not finished
  Faulty(const CheckedTrainings& checked, const Fault& has_fault);
  bool none() const { return count_ == 0; }
  std::size_t count() const { return count_; }
  std::string words() const;

 private:
  std::size_t count_ = 0;
  std::vector<std::string> parts_;
};

/// Trainings of which a fault can be told in words.
struct FaultInWords {
  std::string words;  ///< those that have it; empty: none
  std::string first;  ///< of the first of them
};
/// @param fault_of  empty: none. Called for finished trainings
FaultInWords faulty(const CheckedTrainings& checked,
                    const std::function<std::string(const runfile::TrainedSeed&)>& fault_of);

CheckOutcome files(const CheckedTrainings& checked);
CheckOutcome finished(const CheckedTrainings& checked);
/// @param divergence_of  why a training has diverged; empty: it has not
CheckOutcome diverged(const CheckedTrainings& checked,
                      const std::function<std::string(const runfile::TrainedSeed&)>& divergence_of);
CheckOutcome seeds(const CheckedTrainings& checked);
/// @param advice  where the filter was not in force
CheckOutcome filter(const CheckedTrainings& checked, std::string advice);
/// @param advice  where a layer is at its bound
CheckOutcome bounds(const CheckedTrainings& checked, std::string advice);

}  // namespace gainlens::analyses::training_checks
