#pragma once

#include "core/json.h"
#include "runfile/run_store.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Files of a run of `gainlens intervene --clean --corrupt`: docs/run-file.md.

namespace gainlens::runfile {

inline constexpr std::string_view patching_run_format = "gainlens-patching";
inline constexpr std::int64_t patching_run_version = 1;
inline constexpr const char* patching_result = "patching.json";

/// What was patched.
struct Patch {
  std::string text;        ///< "blocks.0.attn.hook_z[head=3]=patch"
  std::string site = {};   ///< within its layer, "attn.hook_z"; "": several places, or outside the layers
  std::int64_t layer = 0;  ///< where `site` is not empty
  std::optional<std::int64_t> head = {};
  std::optional<std::int64_t> position = {};

  friend bool operator==(const Patch&, const Patch&) = default;
};

/// What a patch did.
struct PatchEffect {
  double metric = 0;                ///< of the last position of the patched run
  double site_norm_before = 0;      ///< Euclidean norm of the numbers that the patch changes, before
  double site_norm_after = 0;       ///< and after
  double largest_logit_change = 0;  ///< at the last position; 0: the patch changed nothing there

  friend bool operator==(const PatchEffect&, const PatchEffect&) = default;
};

/// Where values go. Denoising: from the clean run into the corrupt one; noising: from the corrupt run into the clean
/// one.
enum class PatchDirection { denoising, noising };
inline constexpr std::array<PatchDirection, 2> patch_directions = {PatchDirection::denoising, PatchDirection::noising};
std::string_view name_of(PatchDirection direction);

/// One direction, or a part of its patches.
struct PatchedPrompt {
  double base = 0;                   ///< metric of the run that is patched
  double other = 0;                  ///< metric of the run that values come from
  std::vector<PatchEffect> effects;  ///< [patch]

  friend bool operator==(const PatchedPrompt&, const PatchedPrompt&) = default;
};

/// What is computed and stored at once: the patches of one direction that start in one layer.
struct PatchingUnit {
  std::vector<std::size_t> patches;  ///< their places among those of the run
  PatchedPrompt prompt;              ///< with their effects

  friend bool operator==(const PatchingUnit&, const PatchingUnit&) = default;
};

struct PatchingRun {
  Json request = Json::object();  ///< what determines the numbers
  std::vector<Patch> patches;
  std::array<PatchedPrompt, 2> directions;  ///< [PatchDirection]
};

/// The name of a unit in a RunStore, `DIRECTION-layer-L`. The embedding is layer -1.
std::string patch_unit_name(PatchDirection direction, std::int64_t layer);
/// A unit as it is stored.
Json to_json(const PatchingUnit& unit);
/// @throws InvalidArgument, Json::exception  another form, or a number that is not finite
PatchingUnit patching_unit_from(const Json& json);

/// What `patching.json` holds.
Json to_json(const PatchingRun& run);

/// Writes `patching.json` of a run folder as store_result().
void write_patching_run(const std::filesystem::path& folder, const PatchingRun& run);

/// Reads a finished run.
/// @throws InvalidArgument  as read_result()
PatchingRun read_patching_run(const std::filesystem::path& folder, Proof proof = Proof::by_reader);

}  // namespace gainlens::runfile
