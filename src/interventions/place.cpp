#include "interventions/place.h"

#include "core/check.h"
#include "core/counted.h"
#include "core/nearest.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace gainlens::interventions {
namespace {

constexpr std::string_view layer_prefix = "blocks.";

/// The number in "blocks.N."; nothing at a site outside the layers.
std::optional<std::int64_t> layer_number(std::string_view site) {
  if (!site.starts_with(layer_prefix)) return std::nullopt;
  std::int64_t layer = 0;
  const char* const first = site.data() + layer_prefix.size();
  const auto [end, error] = std::from_chars(first, site.data() + site.size(), layer);
  if (error != std::errc() || end == site.data() + site.size() || *end != '.') return std::nullopt;
  return layer;
}

const hooks::SiteShape& site_named(const Write& write, const models::DecoderConfig& config,
                                   const std::vector<hooks::SiteShape>& sites) {
  const auto found = std::ranges::find(sites, write.site, [](const auto& shape) { return shape.site.name; });
  if (found != sites.end()) return *found;
  const std::string where = fmt::format("intervention '{}'", printable(write.text()));
  const auto layer = layer_number(write.site);
  CHECK(!layer || (0 <= *layer && *layer < config.layers), "{}: layer {} is out of range; the model has layers 0 to {}",
        where, *layer, config.layers - 1);
  const bool attention = write.site.find(".attn.") != std::string::npos;
  CHECK(!layer || !attention || config.attends(*layer),
        "{}: layer {} has {} and no site attn.*; take its hook_attn_out, or a "
        "layer with softmax attention",
        where, *layer, config.without_attention());
  CHECK(!write.site.ends_with("attn.hook_gate"), "{}: the model has no gates; scale attn.hook_z instead", where);
  std::vector<std::string> names(sites.size());
  std::ranges::transform(sites, names.begin(), [](const auto& shape) { return shape.site.name; });
  throw_invalid("{}: the model has no site '{}'{}; `gainlens hooks MODEL` lists its sites", where,
                printable(write.site, 80), did_you_mean(write.site, names));
}

/// The layer whose start a pass can be continued from.
std::int64_t layer_of(const hooks::Site& site, const models::DecoderConfig& config) {
  if (const auto layer = layer_number(site.name)) return *layer;
  return site.name == "ln_final.hook_normalized" ? config.layers : -1;
}

void check_range(std::int64_t index, std::int64_t count, std::string_view what, const std::string& where) {
  CHECK(index < count, "{}: {} {} is out of range; there are {}, from 0 to {}", where, what, index,
        counted(count, what), count - 1);
}

}  // namespace

at::Tensor Place::part(const at::Tensor& tensor, const Write& write) const {
  at::Tensor part = tensor;
  if (write.head) part = part.narrow(*head_axis, *write.head, 1);
  if (write.position) part = part.narrow(position_axis, write.position->first, write.position->size());
  if (write.key && write.mode != Mode::knockout) part = part.narrow(-1, write.key->first, write.key->size());
  return part;
}

Place place_of(const Write& write, const models::DecoderConfig& config, const std::vector<hooks::SiteShape>& sites,
               std::int64_t length) {
  const hooks::SiteShape& shape = site_named(write, config, sites);
  const std::string where = fmt::format("intervention '{}'", printable(write.text()));
  Place place{.site = shape.site, .layer = layer_of(shape.site, config)};
  CHECK(shape.site != hooks::logits_site(), "{}: {} can be observed, not replaced; write to ln_final.hook_normalized",
        where, shape.site.name);
  if (shape.site.name.find(".attn.") != std::string::npos) {
    const bool pattern = shape.site.name.ends_with("hook_pattern");
    place.head_axis = pattern ? 1 : 2;
    place.position_axis = pattern ? 2 : 1;
    place.sums_positions = !pattern;
    place.heads = std::stoll(shape.shape.at(static_cast<std::size_t>(*place.head_axis)));
    constexpr std::array kv_sites = {".hook_k", ".hook_v", ".hook_rot_k"};
    place.kv_heads =
        std::ranges::any_of(kv_sites, [&](const char* ending) { return shape.site.name.ends_with(ending); });
  }
  if (write.head) {
    CHECK(place.head_axis, "{}: {} has no heads; leave [head=..] out", where, shape.site.name);
    check_range(*write.head, place.heads, place.kv_heads ? "KV head" : "query head", where);
  }
  if (write.position) check_range(write.position->end - 1, length, "position", where);
  CHECK(!write.key || !place.sums_positions,
        "{}: only attn.hook_pattern has keys; leave [key=..] out, or take "
        "[position=..] at attn.hook_k or attn.hook_v",
        where);
  if (write.key) check_range(write.key->end - 1, length, "key", where);
  CHECK(write.mode != Mode::knockout || write.key,
        "{}: a knockout needs the keys that queries no longer see: attn.hook_pattern[key=K]=knockout", where);
  place.sink_logits = config.sink_logits;
  CHECK(place.sums_positions || (write.mode != Mode::mean && write.mode != Mode::resample),
        "{}: attention weights of pairs of positions have no {}; take knockout, zero, a factor or a file", where,
        write.mode == Mode::mean ? "mean over positions" : "counterpart in another document");
  return place;
}

bool replacing_keeps_bits(const hooks::Site& site) {
  constexpr std::array endings = {".hook_q", ".hook_k",    ".hook_v",         ".hook_rot_q",     ".hook_rot_k",
                                  ".hook_z", ".hook_gate", ".hook_resid_pre", ".hook_resid_mid", ".hook_resid_post"};
  return site.name == "hook_embed" ||
         std::ranges::any_of(endings, [&](const char* ending) { return site.name.ends_with(ending); });
}

}  // namespace gainlens::interventions
