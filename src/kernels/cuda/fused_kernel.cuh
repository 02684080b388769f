#pragma once

// The fused kernel. One thread block has 64 queries of one head and processes, tile by tile, the keys and values that
// they see.

namespace gainlens::kernels::device {

template <typename Element, int width>
class FusedBlock {
 public:
  using Layout = FusedLayout<Element, width>;
  using Stored = typename Element::Stored;
  using Centred = typename Element::Centred;
  static_assert(Layout::summed_fields == dimension_sums, "room for the sums that the two sets of warps exchange");

  GAINLENS_DEVICE FusedBlock(const FusedArguments& in, char* shared)
      : in_(in),
        head_(block_x()),
        // Causal blocks grow with the position, so the last block comes first.
        block_query_(in.first_query + (grid_y() - 1 - block_y()) * fused_rows),
        warp_row_(thread_index() / 32 % 4 * 16),
        row_(warp_row_ + thread_index() % 32 / 4),
        first_dim_(thread_index() / 128 * Layout::part_dims),
        scratch_(in.scratch == nullptr
                     ? nullptr
                     : in.scratch +
                           (static_cast<std::int64_t>(block_y()) * in.heads + head_) * Layout::scratch_doubles +
                           thread_index()),
        queries_(reinterpret_cast<Stored*>(shared)),
        tiles_(shared + Layout::query_bytes),
        first_scores_(reinterpret_cast<float*>(tiles_ + 4 * Layout::tile_bytes)),
        weights_(first_scores_ + 64 * Layout::first_keys + thread_index() / 32 * 16 * Layout::tile_keys),
        partial_(first_scores_ + (Layout::first_scores_bytes + Layout::weights_bytes) / 4) {}

  GAINLENS_DEVICE void run() {
    const int end = last_key();
    int begin = in_.window > 0 ? block_query_ - in_.window + 1 : 0;
    begin = begin > 0 ? begin / Layout::tile_keys * Layout::tile_keys : 0;
    const std::int64_t head = static_cast<std::int64_t>(head_) * in_.length * width;
    load_tile<Stored, width>(queries_, static_cast<const Stored*>(in_.query) + head, block_query_, fused_rows,
                             in_.length, Layout::threads);
    for (int i = thread_index(); i < 64 * Layout::first_keys; i += Layout::threads) first_scores_[i] = -infinity;
    start_tile(begin, 0);
    for (int key = begin, stage = 0; key < end; key += Layout::tile_keys, stage ^= 1) {
      if (key + Layout::tile_keys < end) {
        start_tile(key + Layout::tile_keys, stage ^ 1);
        copy_async_wait<1>();
      } else {
        copy_async_wait<0>();
      }
      block_barrier();
      absorb_tile(key, stage);
      // Only if more keys follow. The last chain is added at the end.
      if ((key - begin) / Layout::tile_keys % Layout::chain_tiles == Layout::chain_tiles - 1 &&
          key + Layout::tile_keys < end)
        end_chain();
      block_barrier();  // the next copy overwrites this tile
    }
    finish();
  }

 private:
  /// One more than the last key that some query of the block sees.
  GAINLENS_DEVICE int last_key() const {
    const int last_query = (block_query_ + fused_rows < in_.end_query ? block_query_ + fused_rows : in_.end_query) - 1;
    int end = in_.causal ? last_query + 1 : in_.length;
    if (in_.window > 0 && last_query + in_.window < end) end = last_query + in_.window;
    return end;
  }

  GAINLENS_DEVICE Stored* keys(int stage) const {
    return reinterpret_cast<Stored*>(tiles_ + 2 * stage * Layout::tile_bytes);
  }
  GAINLENS_DEVICE Centred* values(int stage) const {
    return reinterpret_cast<Centred*>(tiles_ + (2 * stage + 1) * Layout::tile_bytes);
  }

  GAINLENS_DEVICE void start_tile(int key, int stage) const {
    const std::int64_t head = static_cast<std::int64_t>(head_ / in_.group) * in_.length * width;
    load_tile<Stored, width>(keys(stage), static_cast<const Stored*>(in_.key) + head, key, Layout::tile_keys,
                             in_.length, Layout::threads);
    load_tile<Centred, width>(values(stage), static_cast<const Centred*>(in_.centred) + head, key, Layout::tile_keys,
                              in_.length, Layout::threads);
    copy_async_commit();
  }

  GAINLENS_DEVICE bool visible(int query, int key) const {
    const int distance = query - key;
    return key < in_.length && !(in_.causal && distance < 0) &&
           !(in_.window > 0 && (distance >= in_.window || -distance >= in_.window));
  }

  /// Whether a key of the tile is hidden from some query of the block.
  GAINLENS_DEVICE bool tile_is_cut(int key) const {
    const int last_key = key + Layout::tile_keys - 1, last_query = block_query_ + fused_rows - 1;
    if (last_key >= in_.length || (in_.causal && last_key > block_query_)) return true;
    return in_.window > 0 && (last_query - key >= in_.window || last_key - block_query_ >= in_.window);
  }

  /// Turns products into scores: scaled, capped, biased, -inf if hidden.
  GAINLENS_DEVICE void finish_scores(float (&scores)[Layout::key_blocks][4], int key) const {
    const bool cut = tile_is_cut(key);
    const int lane = thread_index() % 32;
    GAINLENS_UNROLL
    for (int block = 0; block < Layout::key_blocks; ++block) {
      GAINLENS_UNROLL
      for (int i = 0; i < 4; ++i) {
        const int column = key + block * 8 + lane % 4 * 2 + i % 2, query = block_query_ + row_ + i / 2 * 8;
        float score = scores[block][i] * in_.scale;
        if (in_.soft_cap > 0) score = in_.soft_cap * tanhf(score / in_.soft_cap);
        if (cut && !visible(query, column)) {
          score = -infinity;
        } else {
          if (in_.key_bias != nullptr) score += in_.key_bias[head_ * in_.key_bias_stride + column];
          const int distance = query < column ? column - query : query - column;
          if (in_.distance_bias != nullptr && distance < in_.length)
            score += in_.distance_bias[head_ * in_.distance_bias_stride + distance];
        }
        scores[block][i] = score;
      }
    }
  }

  /// Keeps the scores of the first keys, and takes key 0 out of the sums.
  GAINLENS_DEVICE void take_first_keys(float (&scores)[Layout::key_blocks][4]) const {
    const int column = thread_index() % 4 * 2;
    if (first_dim_ == 0) {
      GAINLENS_UNROLL
      for (int i = 0; i < 4; ++i)
        first_scores_[(row_ + i / 2 * 8) * Layout::first_keys + column + i % 2] = scores[0][i];
    }
    if (column == 0) scores[0][0] = scores[0][2] = -infinity;
  }

  GAINLENS_DEVICE void absorb_tile(int key, int stage) {
    float scores[Layout::key_blocks][4];
    score_products<Element, width>(scores, queries_, keys(stage), warp_row_);
    finish_scores(scores, key);
    if (key == 0) take_first_keys(scores);
    const float shrink[2] = {sums_[0].absorb(scores, 0), sums_[1].absorb(scores, 2)};
    if (any_of_warp(shrink[0] != 1 || shrink[1] != 1)) {
      GAINLENS_UNROLL
      for (int block = 0; block < Layout::value_blocks; ++block) {
        GAINLENS_UNROLL
        for (int i = 0; i < 4; ++i) {
          means_[block][i] *= shrink[i / 2];
          squares_[block][i] *= shrink[i / 2];
        }
      }
      chain_shrink_[0] *= shrink[0];
      chain_shrink_[1] *= shrink[1];
    }
    std::uint32_t packed[Layout::key_blocks][2];
    hand_over_weights(scores, packed);
    value_products<Element, width>(means_, squares_, packed, weights_, values(stage), first_dim_);
  }

  /// Stores the weights in the form that the products with values take: pairs of bfloat16, or floats in shared memory.
  GAINLENS_DEVICE void hand_over_weights(const float (&scores)[Layout::key_blocks][4],
                                         std::uint32_t (&packed)[Layout::key_blocks][2]) {
    float rounded[2] = {0, 0};
    const int lane = thread_index() % 32;
    if constexpr (!Element::tensor_cores) warp_barrier();  // until all threads have read the weights of the tile before
    GAINLENS_UNROLL
    for (int block = 0; block < Layout::key_blocks; ++block) {
      GAINLENS_UNROLL
      for (int half = 0; half < 2; ++half) {
        if constexpr (Element::tensor_cores) {
          const std::uint32_t pair = pack_bfloat16(scores[block][2 * half], scores[block][2 * half + 1]);
          packed[block][half] = pair;
          rounded[half] += float_of_bits(pair << 16) + float_of_bits(pair & 0xffff0000u);
        } else {
          packed[block][half] = 0;
          float* to = weights_ + (lane / 4 + half * 8) * Layout::tile_keys + block * 8 + lane % 4 * 2;
          to[0] = scores[block][2 * half];
          to[1] = scores[block][2 * half + 1];
          rounded[half] += to[0] + to[1];
        }
      }
    }
    sums_[0].value_weight += rounded[0];
    sums_[1].value_weight += rounded[1];
    if constexpr (!Element::tensor_cores) warp_barrier();
  }

  /// Where this thread keeps its sum number `index`. The places of neighbouring threads are adjacent.
  GAINLENS_DEVICE double& kept(int index) const { return scratch_[index * Layout::threads]; }

  /// Adds the sums in registers, which lose digits as they grow, to the sums in float64. Then sets them to 0.
  GAINLENS_DEVICE void end_chain() {
    GAINLENS_UNROLL
    for (int block = 0; block < Layout::value_blocks; ++block) {
      GAINLENS_UNROLL
      for (int i = 0; i < 4; ++i) {
        const int index = 2 * (block * 4 + i);
        kept(index) = (has_kept_ ? kept(index) * chain_shrink_[i / 2] : 0) + means_[block][i];
        kept(index + 1) = (has_kept_ ? kept(index + 1) * chain_shrink_[i / 2] : 0) + squares_[block][i];
        means_[block][i] = squares_[block][i] = 0;
      }
    }
    chain_shrink_[0] = chain_shrink_[1] = 1;
    has_kept_ = true;
  }

  GAINLENS_DEVICE void finish() {
    GAINLENS_UNROLL
    for (int half = 0; half < 2; ++half) {
      sums_[half].gather();
      finish_row(half);
    }
  }

  /// All threads of a warp call this together. Rows after the end of the text and rows without keys store nothing.
  GAINLENS_DEVICE void finish_row(int half) {
    const int row = row_ + half * 8, position = block_query_ + row, lane = thread_index() % 32;
    const float* first_scores = first_scores_ + row * Layout::first_keys;
    const RowSums& sums = sums_[half];
    const bool stored = position < in_.end_query && (sums.total > 0 || first_scores[0] != -infinity);
    const bool writes_scalars = stored && first_dim_ == 0 && lane % 4 == 0;
    const RowMass mass = stored ? mass_of_row(sums, static_cast<double>(first_scores[0])) : RowMass{};
    const RowResults<Element> results(in_, head_, stored ? position : 0, width, mass);
    if (writes_scalars) results.store_masses(mass, first_scores);
    float dimensions[dimension_sums] = {};
    const double inverse = sums.value_weight > 0 ? 1 / sums.value_weight : 0;
    GAINLENS_UNROLL
    for (int block = 0; block < Layout::value_blocks; ++block) {
      GAINLENS_UNROLL
      for (int i = 0; i < 2; ++i) {
        const int dim = first_dim_ + block * 8 + lane % 4 * 2 + i;
        double mean = means_[block][2 * half + i], square = squares_[block][2 * half + i];
        if (has_kept_) {
          const int index = 2 * (block * 4 + 2 * half + i);
          mean += kept(index) * chain_shrink_[half];
          square += kept(index + 1) * chain_shrink_[half];
        }
        mean *= inverse;
        const double spread = fmax(square * inverse - mean * mean, 0.0);
        if (stored && dim < in_.head_dim)
          results.add(dim, static_cast<float>(mean), static_cast<float>(spread), dimensions);
      }
    }
    GAINLENS_UNROLL
    for (int i = 0; i < dimension_sums; ++i) dimensions[i] = quad_sum(dimensions[i]);
    if constexpr (Layout::value_parts > 1) {
      block_barrier();
      if (first_dim_ > 0 && lane % 4 == 0) {
        for (int i = 0; i < dimension_sums; ++i) partial_[row * dimension_sums + i] = dimensions[i];
      }
      block_barrier();
      if (first_dim_ == 0) {
        for (int i = 0; i < dimension_sums; ++i) dimensions[i] += partial_[row * dimension_sums + i];
      }
    }
    if (writes_scalars) results.store_means(dimensions);
  }

  const FusedArguments& in_;
  const int head_, block_query_;
  const int warp_row_, row_;  ///< first row of the warp's 16, and first row of this thread; its second row is 8 further
  const int first_dim_;       ///< the first value dimension of this warp
  double* const scratch_;     ///< this thread's sums over finished chains; null: not needed
  Stored* const queries_;
  char* const tiles_;          ///< two stages of a tile of keys and one of values
  float* const first_scores_;  ///< [row, first_keys]
  float* const weights_;       ///< [16, tile_keys] of this warp; used without tensor cores
  float* const partial_;       ///< [row, DimensionSum] of the second set of warps
  RowSums sums_[2];
  float means_[Layout::value_blocks][4] = {};    ///< sum p u since the end of the last chain
  float squares_[Layout::value_blocks][4] = {};  ///< sum p u^2
  double chain_shrink_[2] = {1, 1};              ///< factors that the kept sums of both rows still need
  bool has_kept_ = false;
};

}  // namespace gainlens::kernels::device
