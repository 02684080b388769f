#pragma once

#include "kernels/instruction_limit.h"

#include <hwy/targets.h>

#include <cstdint>

namespace gainlens::kernels::testing {

/// Calls `work` with the name of each instruction set of the machine, while the vector code is limited to this set.
template <typename Work>
void for_each_instruction_set(const Work& work) {
  instruction_limit();
  for (std::int64_t left = hwy::SupportedTargets(); left != 0; left &= left - 1) {
    hwy::SetSupportedTargetsForTest(left & -left);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    work(hwy::TargetName(left & -left));
  }
  hwy::SetSupportedTargetsForTest(0);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace gainlens::kernels::testing
