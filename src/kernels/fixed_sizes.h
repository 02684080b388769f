#pragma once

#include <cstdint>

// Sizes that estimates of memory and time need without libtorch.

namespace gainlens::kernels {

/// How many of the first keys have their mass reported (`first_mass`, `column_mean`).
inline constexpr std::int64_t first_keys = 8;

/// Positions of a chunk of gated_delta_rule_chunked.
inline constexpr std::int64_t delta_chunk_positions = 64;

/// Logits of a block, where a likelihood needs whole rows of them: 256 MiB in float32.
inline constexpr std::int64_t logits_per_block = std::int64_t{1} << 26;

/// The widest panel of outputs of a packed weight: four AMX tiles of 16 columns. Fewer would mean more calls.
inline constexpr std::int64_t max_panel_columns = 64;

/// Rows of a block of a product, at most: it stays in the second-level cache while the panels pass.
inline constexpr std::int64_t max_product_rows = 192;

/// Outputs whose sums are formed by one task of target_losses(). Another value gives other bits.
inline constexpr std::int64_t loss_segment_outputs = 16384;

/// Logits of a tile of target_losses(): they stay in the second-level cache.
inline constexpr std::int64_t loss_tile_outputs = 256;

/// What one segment of the vocabulary adds to a row of target_losses().
inline constexpr std::int64_t loss_part_bytes = 32;

}  // namespace gainlens::kernels
