#pragma once

#include "hooks/site.h"
#include "interventions/write.h"
#include "models/decoder/decoder_config.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::interventions {

/// One query head.
struct HeadOfLayer {
  std::int64_t layer = 0;
  std::int64_t head = 0;
};

/// Units that are all changed, one after the other.
struct EveryUnit {
  std::vector<HeadOfLayer> some_heads;  ///< some query heads: `attn.hook_z[head=H]`
  bool heads = false;                   ///< query heads: `attn.hook_z[head=H]`
  bool kv_heads = false;  ///< KV heads: `attn.hook_v[head=G]`, the values that a group of query heads shares
  bool layers = false;    ///< `hook_attn_out` and `hook_mlp_out` of each layer
  std::vector<Mode> modes = {Mode::zero};

  bool any() const { return heads || kv_heads || layers || !some_heads.empty(); }
};

/// Reads "5.1": layer and head, which may be negative. Nothing: another form.
std::optional<HeadOfLayer> read_head(std::string_view text);

/// Reads "5.1,11.2": layer and head of each.
/// @param what  for messages: "--heads"
/// @throws InvalidArgument  another form
std::vector<HeadOfLayer> parse_heads(const std::string& text, std::string_view what);

/// One intervention for each unit and mode, layer by layer. Layers of linear attention have no heads.
/// @throws InvalidArgument  heads are asked for, and no layer has them; a head of `some_heads` that `heads` has too
std::vector<Intervention> interventions_on(const EveryUnit& every, const models::DecoderConfig& config);

/// An intervention on as many other heads of the same layers, or the reason why there is none.
struct Control {
  std::optional<Intervention> intervention;
  std::string reason;  ///< where there is none
};

/// Draws other heads at random for the heads of an intervention, by the seed and these heads. Sites, positions and
/// values stay, so that all modes have the same control.
/// @param sites  of the model, which have the intervention's places
Control control_of(const Intervention& intervention, const models::DecoderConfig& config,
                   const std::vector<hooks::SiteShape>& sites, std::int64_t length, std::uint64_t seed);

}  // namespace gainlens::interventions
