#include "recommend/user_attention.h"

#include "bft/filter_pass.h"
#include "core/check.h"
#include "kernels/attention_statistics.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <utility>
#include <vector>

namespace gainlens::recommend {
namespace {

using Rows = std::map<std::string, at::Tensor, std::less<>>;  // by name, [user, head]

bool has_site(const std::vector<hooks::SiteShape>& sites, std::int64_t layer, std::string_view rest) {
  const hooks::Site wanted = hooks::block_site(layer, rest);
  return std::ranges::any_of(sites, [&](const hooks::SiteShape& site) { return site.site.name == wanted.name; });
}

/// Whether the model shows a factor on what attention found. A filter that is not in force shows none.
bool shows_gain(Backbone& model) {
  training::FilterHost* const host = model.filter();
  if (host == nullptr || host->armed_filter().parts().factor == AttentionFactor::one) return false;
  const at::Tensor& strength = host->initial_precision_weights().strength;
  return !host->armed_filter().has_gain() || !strength.defined() || strength.item<double>() > 0;
}

bool gain_is_of_heads(Backbone& model) {
  return !model.filter()->armed_filter().gains_in_stream();
}

/// The last position of each history, and what the weights of some of its keys are found by.
class Ranked {
 public:
  Ranked(const PackedSequences& packed, bool masked)
      : last_(packed.last_rows()), masked_(masked), marks_(at::zeros({packed.positions(), 3}, at::kDouble)) {
    for (std::int64_t user = 0; user < packed.sequences(); ++user) {
      const std::int64_t begin = packed.begin[static_cast<std::size_t>(user)],
                         end = packed.begin[static_cast<std::size_t>(user) + 1];
      sequences_.push_back({begin, end});
      keys_.push_back(static_cast<double>(end - begin));
      ASSERT(end - begin > (masked ? 1 : 0), "user {}: a history without an item", user);
      marks_[begin][0] = 1;
      marks_[end - (masked ? 2 : 1)][1] = 1;
      if (masked) marks_[end - 1][2] = 1;
    }
  }

  /// The numbers of a layer, without the gain of the model.
  Rows numbers(const SeenAttention& seen) const {
    const auto by_head = [](const at::Tensor& rows) { return rows.detach().to(at::kDouble).transpose(0, 1); };
    const at::Tensor query = by_head(seen.query), key = by_head(seen.key), value = by_head(seen.value);
    kernels::AttentionOptions options{.scale = seen.options.scale, .causal = seen.options.causal};
    options.sequences = sequences_;
    const std::int64_t positions = query.size(1);
    if (seen.options.key_bias.defined()) options.key_bias = seen.options.key_bias.detach().to(at::kDouble);
    if (seen.options.distance_slope.defined()) {
      const at::Tensor slope = seen.options.distance_slope.detach().to(at::kDouble).expand({query.size(0)});
      options.distance_bias = slope.unsqueeze(1) * at::arange(positions, slope.options());
    }
    options.returned = kernels::moments_alone;
    options.returned.entropy = true;
    kernels::AttentionPlan plan(options);
    const kernels::QueryStatistics found = kernels::attention_statistics(plan, query, key, value);

    // The weight of a key is what attention gives of values that are 1 at this key and 0 elsewhere.
    options.returned.output = true;
    options.returned.entropy = false;
    kernels::AttentionPlan marked(options);
    const at::Tensor marks = marks_.to(query.device()).expand({query.size(0), -1, -1});
    const at::Tensor weights =
        kernels::attention_statistics(marked, query, key, marks).output.index_select(1, last_).clamp(0, 1);  // rounding

    const auto user_means = [&](const at::Tensor& query_numbers) {
      return query_numbers.index_select(1, last_).transpose(0, 1).contiguous();
    };
    const auto weight = [&](std::int64_t mark) { return weights.select(2, mark).transpose(0, 1).contiguous(); };
    Rows rows = {{"n_eff", user_means(found.n_eff)},
                 {"kalman_gain", user_means(found.kalman_gain)},
                 {"entropy", user_means(found.entropy)},
                 {"first_mass", weight(0)},
                 {"last_mass", weight(1)}};
    if (masked_) rows["mask_mass"] = weight(2);
    rows["n_eff_share"] = rows.at("n_eff") / at::tensor(keys_, rows.at("n_eff").options()).unsqueeze(1);
    return rows;
  }

  /// @param gain  [1, position, head, head_dim]
  at::Tensor gain(const at::Tensor& gain, bool each_head) const {
    const at::Tensor rows = gain.squeeze(0).index_select(0, last_).to(at::kDouble);
    return each_head ? rows.mean(2) : rows.mean({1, 2}).unsqueeze(1).expand({-1, rows.size(1)});
  }

 private:
  at::Tensor last_;  // [user]
  bool masked_;
  at::Tensor marks_;  // [position, mark]: first item, last item, MASK
  std::vector<kernels::Sequence> sequences_;
  std::vector<double> keys_;  // [user]
};

void append(std::vector<double>& to, const at::Tensor& values) {
  const at::Tensor own = values.to(at::kCPU).contiguous();
  const double* const first = own.const_data_ptr<double>();
  to.insert(to.end(), first, first + own.numel());
}

void check_numbers(const UserAttention& found, const std::string& where) {
  for (const AttentionNumber& number : attention_numbers) {
    const std::vector<double>& values = found.numbers.find(number.name)->second;
    const auto finite = [](double value) { return std::isfinite(value); };
    if (number.always && !std::ranges::all_of(values, finite))
      throw_run_failed("{}: {} of a head is NaN or infinite", where, number.label);
  }
}

}  // namespace

UserAttention user_attention(Backbone& model, const data::LeaveOneOut& split, data::HeldOut held_out,
                             const std::string& where, std::int64_t users_at_once) {
  ASSERT(users_at_once >= 1, "{} users at once", users_at_once);
  const c10::InferenceMode inference;
  const std::vector<hooks::SiteShape> sites = model.sites();
  const std::int64_t layers = std::ssize(model.layout().window), heads = model.layout().heads;
  for (std::int64_t layer = 0; layer < layers; ++layer)
    CHECK(has_site(sites, layer, "attn.hook_pattern"),
          "{}: its heads have other weights in each dimension, or weights that depend on the estimator; n_eff and the "
          "masses need one weight for each key",
          where);
  UserAttention found{split.users(), layers, heads, {}};
  for (const AttentionNumber& number : attention_numbers) found.numbers[std::string(number.name)];
  const bool masked = model.view().mask != 0, gained = shows_gain(model);
  const bool each_head = gained && gain_is_of_heads(model);
  std::vector<Rows> layer_rows(static_cast<std::size_t>(layers));
  const Ranked* ranked = nullptr;
  const AttentionWatcher watch = [&](const SeenAttention& seen) {
    Rows& rows = layer_rows[static_cast<std::size_t>(seen.layer)];
    for (auto& [name, values] : ranked->numbers(seen)) rows[name] = values;
  };
  hooks::Hooks hooks;
  for (std::int64_t layer = 0; gained && layer < layers; ++layer) {
    hooks.observe(hooks::block_site(layer, bft::gain_site), [&, layer](const hooks::Site&, const at::Tensor& gain) {
      layer_rows[static_cast<std::size_t>(layer)]["model_gain"] = ranked->gain(gain, each_head);
    });
  }
  for (std::int64_t begin = 0; begin < split.users(); begin += users_at_once) {
    std::vector<data::History> histories;
    for (std::int64_t user = begin; user < std::min(begin + users_at_once, split.users()); ++user)
      histories.push_back(split.history(user, held_out));
    const PackedSequences packed = pack(histories, model.view(), model.device());
    const Ranked here(packed, masked);
    ranked = &here;
    model.run(packed, {.watch = &watch}, hooks);
    CHECK(std::ranges::none_of(layer_rows, &Rows::empty),
          "{}: its attention is no softmax; n_eff, entropy and the masses are those of weights that sum to one", where);
    const at::Tensor none =
        at::full({packed.sequences(), heads}, std::numeric_limits<double>::quiet_NaN(), at::kDouble);
    for (auto& [name, values] : found.numbers) {
      std::vector<at::Tensor> parts;
      parts.reserve(layer_rows.size());
      for (const Rows& rows : layer_rows) parts.push_back(rows.contains(name) ? rows.at(name).to(at::kCPU) : none);
      append(values, at::stack(parts, 1));
    }
  }
  check_numbers(found, where);
  return found;
}

}  // namespace gainlens::recommend
