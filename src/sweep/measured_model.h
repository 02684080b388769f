#pragma once

#include "hooks/hooked_model.h"
#include "runfile/request.h"

#include <cstdint>
#include <string>
#include <vector>

namespace gainlens::sweep {

/// The part of a run's request that describes the model. It is set here and nowhere else, because the datasets of a run
/// follow from the model.
/// @param layers  original indices of the layers that are measured, in order
runfile::MeasuredModel measured_model(std::string family, const hooks::AttentionLayout& layout,
                                      std::vector<std::int64_t> layers);

}  // namespace gainlens::sweep
