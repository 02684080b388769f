#include "interventions/arm_list.h"

#include "core/check.h"
#include "core/random.h"
#include "core/sha256.h"
#include "interventions/place.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <string>
#include <string_view>

namespace gainlens::interventions {
namespace {

void add_each(std::int64_t layer, std::string_view site, std::int64_t heads, const std::vector<Mode>& modes,
              std::vector<Intervention>& all) {
  for (std::int64_t head = 0; head < heads; ++head) {
    for (const Mode mode : modes)
      all.push_back({{Write{.site = hooks::block_site(layer, site).name, .head = head, .mode = mode}}});
  }
}

/// Other heads are drawn by the seed and the heads alone, so that all modes and positions have the same control, in
/// whatever list they stand.
Random random_of(std::uint64_t seed, const std::string& site, const std::vector<std::int64_t>& heads) {
  const std::string digest = sha256_hex(fmt::format("{} {}", site, fmt::join(heads, ",")));
  return Random(seed, std::stoull(digest.substr(0, 16), nullptr, 16));
}

}  // namespace

std::optional<HeadOfLayer> read_head(std::string_view text) {
  const char* const end = text.data() + text.size();
  HeadOfLayer found;
  const auto layer = std::from_chars(text.data(), end, found.layer);
  if (layer.ec != std::errc() || layer.ptr == end || *layer.ptr != '.') return std::nullopt;
  const auto head = std::from_chars(layer.ptr + 1, end, found.head);
  return head.ec == std::errc() && head.ptr == end ? std::optional(found) : std::nullopt;
}

std::vector<HeadOfLayer> parse_heads(const std::string& text, std::string_view what) {
  std::vector<HeadOfLayer> heads;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view given = std::string_view(text).substr(begin, end - begin);
    const auto one = read_head(given);
    CHECK(one && one->layer >= 0 && one->head >= 0,
          "{}: '{}' is no head; give LAYER.HEAD, several joined by commas: 5.1,11.2", what, printable(given, 40));
    heads.push_back(*one);
    begin = end + 1;
  }
  return heads;
}

std::vector<Intervention> interventions_on(const EveryUnit& every, const models::DecoderConfig& config) {
  CHECK((!every.heads && !every.kv_heads) || config.attention_layers(config.layers) > 0,
        "--each-head: every layer has {} and no heads to write to; use --each-layer", config.without_attention());
  CHECK(!every.heads || every.some_heads.empty(), "--heads: --each-head has these too; leave one of them out");
  std::vector<Intervention> all;
  for (const HeadOfLayer& one : every.some_heads) {
    for (const Mode mode : every.modes)
      all.push_back(
          {{Write{.site = hooks::block_site(one.layer, "attn.hook_z").name, .head = one.head, .mode = mode}}});
  }
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    if (config.attends(layer)) {
      if (every.heads) add_each(layer, "attn.hook_z", config.heads, every.modes, all);
      if (every.kv_heads) add_each(layer, "attn.hook_v", config.kv_heads_of(layer), every.modes, all);
    }
    if (!every.layers) continue;
    for (const char* site : {"hook_attn_out", "hook_mlp_out"}) {
      for (const Mode mode : every.modes)
        all.push_back({{Write{.site = hooks::block_site(layer, site).name, .mode = mode}}});
    }
  }
  return all;
}

Control control_of(const Intervention& intervention, const models::DecoderConfig& config,
                   const std::vector<hooks::SiteShape>& sites, std::int64_t length, std::uint64_t seed) {
  std::map<std::string, std::vector<std::int64_t>> written;  // the heads of each site, each once
  for (const Write& write : intervention.writes) {
    if (!write.head) return {{}, "it is not of single heads"};
    std::vector<std::int64_t>& heads = written[write.site];
    if (std::ranges::find(heads, *write.head) == heads.end()) heads.push_back(*write.head);
  }
  for (auto& [site, heads] : written) std::ranges::sort(heads);
  Control control{intervention, {}};
  std::map<std::string, std::vector<std::int64_t>> drawn;  // one for each head of `written`
  for (const auto& [site, heads] : written) {
    const auto write = std::ranges::find(intervention.writes, site, &Write::site);
    std::vector<std::int64_t> others(static_cast<std::size_t>(place_of(*write, config, sites, length).heads));
    std::iota(others.begin(), others.end(), 0);
    std::erase_if(others,
                  [&taken = heads](std::int64_t head) { return std::ranges::find(taken, head) != taken.end(); });
    if (others.size() < heads.size()) return {{}, "the layer has too few other heads"};
    random_of(seed, site, heads).shuffle(others);
    drawn[site] = std::move(others);
  }
  for (Write& write : control.intervention->writes) {
    const std::vector<std::int64_t>& heads = written.at(write.site);
    const auto place = std::ranges::find(heads, *write.head) - heads.begin();
    write.head = drawn.at(write.site)[static_cast<std::size_t>(place)];
  }
  return control;
}

}  // namespace gainlens::interventions
