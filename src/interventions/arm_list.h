#pragma once

#include "hooks/site.h"
#include "interventions/write.h"
#include "models/decoder/decoder_config.h"

#include <optional>
#include <string>
#include <vector>

namespace gainlens::interventions {

/// Units that are all changed, one after the other.
struct EveryUnit {
  bool heads = false;     ///< query heads: `attn.hook_z[head=H]`
  bool kv_heads = false;  ///< KV heads: `attn.hook_v[head=G]`, the values that a group of query heads shares
  bool layers = false;    ///< `hook_attn_out` and `hook_mlp_out` of each layer
  std::vector<Mode> modes = {Mode::zero};

  bool any() const { return heads || kv_heads || layers; }
};

/// One intervention for each unit and mode, layer by layer. Layers of linear attention have no heads.
/// @throws InvalidArgument  heads are asked for, and no layer has them
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
