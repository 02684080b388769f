#include "recommend/filtered_positions.h"

#include "bft/filter_pass.h"
#include "core/check.h"
#include "recommend/acting_filter.h"
#include "recommend/row_means.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <vector>

namespace gainlens::recommend {
namespace {

/// @param masks  a mask that stands after each history, which is no item: 0 or 1
void append_users(ReadPositions& to, const PackedSequences& packed, std::int64_t masks) {
  const at::Tensor items = packed.items.to(at::kCPU).contiguous();
  const std::int64_t* const ids = items.const_data_ptr<std::int64_t>();
  for (std::int64_t user = 0; user < packed.sequences(); ++user) {
    const std::int64_t first = packed.begin[static_cast<std::size_t>(user)];
    const std::int64_t length = packed.begin[static_cast<std::size_t>(user) + 1] - first - masks;
    for (std::int64_t i = 0; i < length; ++i) {
      to.item.push_back(static_cast<std::size_t>(ids[first + i] - 1));
      to.place.push_back(static_cast<double>(i + 1));
      to.length.push_back(static_cast<double>(length));
    }
    to.begin.push_back(to.item.size());
  }
}

void check_finite(const FilteredPositions& found, const std::string& where) {
  for (std::size_t layer = 0; layer < found.layers.size(); ++layer) {
    for (const std::vector<double>* values : {&found.layers[layer].gain, &found.layers[layer].precision}) {
      ASSERT(values->size() == found.read.item.size(), "layer {}: {} values for {} positions", layer, values->size(),
             found.read.item.size());
      if (!std::ranges::all_of(*values, [](double value) { return std::isfinite(value); }))
        throw_run_failed("{}: a gain or a precision is NaN or infinite, first in layer {}", where, layer);
    }
  }
}

}  // namespace

FilteredPositions filtered_positions(Backbone& model, const data::LeaveOneOut& split, data::HeldOut held_out,
                                     const std::string& where, std::int64_t users_at_once) {
  ASSERT(users_at_once >= 1, "{} users at once", users_at_once);
  const c10::InferenceMode inference;
  const ActingFilter filter = acting_filter(model, where);
  FilteredPositions found;
  found.share = filter.share;
  found.layers.resize(filter.host.layer_filter_weights().size());
  const std::int64_t mask = model.view().mask;
  at::Tensor item_rows;  // int64: the positions of items in the users that are read; undefined: all
  hooks::Hooks hooks;
  const auto keep = [&](std::size_t layer, std::string_view site, std::vector<double>& to) {
    hooks.observe(hooks::block_site(static_cast<std::int64_t>(layer), site),
                  [&to, &item_rows](const hooks::Site&, const at::Tensor& seen) {
                    const at::Tensor rows = seen.flatten(0, 1);  // seen is [1, position, ..]
                    append_row_means(to, item_rows.defined() ? rows.index_select(0, item_rows) : rows);
                  });
  };
  for (std::size_t layer = 0; layer < found.layers.size(); ++layer) {
    keep(layer, bft::gain_site, found.layers[layer].gain);
    keep(layer, bft::precision_site, found.layers[layer].precision);
  }
  for (std::int64_t begin = 0; begin < split.users(); begin += users_at_once) {
    std::vector<data::History> histories;
    for (std::int64_t user = begin; user < std::min(begin + users_at_once, split.users()); ++user)
      histories.push_back(split.history(user, held_out));
    const PackedSequences packed = pack(histories, model.view(), model.device());
    if (mask != 0) item_rows = packed.items.ne(mask).nonzero().flatten();
    model.run(packed, {}, hooks);
    append_users(found.read, packed, mask != 0 ? 1 : 0);
  }
  check_finite(found, where);
  return found;
}

}  // namespace gainlens::recommend
