#include "recommend/acting_filter.h"

#include "core/check.h"

#include <ATen/ATen.h>

namespace gainlens::recommend {

ActingFilter acting_filter(Backbone& model, const std::string& where) {
  training::FilterHost* const host = model.filter();
  const std::string arm(host != nullptr ? name_of(host->armed_filter().arm) : "plain");
  CHECK(host != nullptr && host->armed_filter().has_gain(), "{}: has no filter: arm {}; train one with --arm bft",
        where, arm);
  const at::Tensor& strength = host->initial_precision_weights().strength;
  const double share = strength.defined() ? strength.item<double>() : 1;
  CHECK(share > 0,
        "{}: its filter is not in force: the best epoch lies before the warm-up ended; train more epochs, or with a "
        "shorter --warm-up; --only-seeds leaves it out",
        where);
  return {*host, share};
}

}  // namespace gainlens::recommend
