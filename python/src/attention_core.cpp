#include "attention_core.h"

#include "kernels/extrema.h"
#include "kernels/row_alignment.h"
#include "kernels/streaming/panel_products.h"
#include "kernels/streaming/top_scores.h"
#include "kernels/tile_sizes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <sstream>
#include <stdexcept>
#include <vector>

namespace gainlens::python {
namespace {

using kernels::blocks_of;
using kernels::centre_keys;
using kernels::DimensionRows;
using kernels::Extrema;
using kernels::first_keys;
using kernels::GainPriors;
using kernels::MassSplit;
using kernels::padded;
using kernels::panel_kernels;
using kernels::PanelKernels;
using kernels::QueryScalars;
using kernels::rounded_up;
using kernels::row_kernels;
using kernels::RowKernels;
using kernels::Rows;
using kernels::SoftmaxSums;
using kernels::StripRange;
using kernels::Summary;
using kernels::tile_keys;
using kernels::TopScores;

constexpr double infinite = std::numeric_limits<double>::infinity();

/// Memory that vector code may read and write: aligned to 64 bytes, kept as long as it is large enough.
template <typename Element>
class Buffer {
 public:
  Element* data() const { return data_.get(); }

  /// Makes room for `count` elements, whose values are not set.
  void reserve(std::int64_t count) {
    if (count <= size_) return;
    const auto bytes = static_cast<std::size_t>(rounded_up(count * static_cast<std::int64_t>(sizeof(Element)), 64));
    data_.reset(static_cast<Element*>(std::aligned_alloc(64, bytes)));
    if (data_ == nullptr) throw std::bad_alloc();
    size_ = count;
  }
  void fill(std::int64_t count, Element value) {
    reserve(count);
    std::fill_n(data(), count, value);
  }

 private:
  struct Free {
    void operator()(Element* pointer) const { std::free(pointer); }
  };
  std::unique_ptr<Element, Free> data_;
  std::int64_t size_ = 0;
};

float float_of_half(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16U, rest = half & 0x7fffU;
  if (rest >= 0x7c00U) return std::bit_cast<float>(sign | 0x7f800000U | (rest & 0x3ffU) << 13U);
  // The exponent is moved from bias 15 to bias 127 by a product, which is exact and takes subnormal numbers too.
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(std::bit_cast<float>(rest << 13U) * 0x1p112F));
}

template <typename Real>
Real element(const TensorView& tensor, std::int64_t index) {
  switch (tensor.type) {
    case ElementType::float32:
      return static_cast<Real>(static_cast<const float*>(tensor.data)[index]);
    case ElementType::float64:
      return static_cast<Real>(static_cast<const double*>(tensor.data)[index]);
    case ElementType::float16:
      return static_cast<Real>(float_of_half(static_cast<const std::uint16_t*>(tensor.data)[index]));
    case ElementType::bfloat16:
      break;
  }
  const auto high = static_cast<std::uint32_t>(static_cast<const std::uint16_t*>(tensor.data)[index]);
  return static_cast<Real>(std::bit_cast<float>(high << 16U));
}

/// Rows [count, dims] of one head as Real. Rows that have this form already are not copied.
template <typename Real>
Rows<const Real> rows_of(const TensorView& tensor, std::int64_t batch, std::int64_t head, std::int64_t first,
                         std::int64_t count, Buffer<Real>& copy) {
  constexpr ElementType own = sizeof(Real) == sizeof(double) ? ElementType::float64 : ElementType::float32;
  const std::int64_t dims = tensor.sizes[3], step = tensor.strides[3];
  const std::int64_t begin = batch * tensor.strides[0] + head * tensor.strides[1] + first * tensor.strides[2];
  if (tensor.type == own && (step == 1 || dims == 1))
    return {static_cast<const Real*>(tensor.data) + begin, tensor.strides[2]};
  copy.reserve(count * dims);
  Real* target = copy.data();
  for (std::int64_t row = 0; row < count; ++row) {
    const std::int64_t from = begin + row * tensor.strides[2];
    if (tensor.type == ElementType::bfloat16 && step == 1) {  // a loop that the compiler turns into vector code
      const auto* source = static_cast<const std::uint16_t*>(tensor.data) + from;
      for (std::int64_t i = 0; i < dims; ++i)
        target[i] = static_cast<Real>(std::bit_cast<float>(static_cast<std::uint32_t>(source[i]) << 16U));
    } else if (tensor.type == ElementType::float16 && step == 1) {
      const auto* source = static_cast<const std::uint16_t*>(tensor.data) + from;
      for (std::int64_t i = 0; i < dims; ++i) target[i] = static_cast<Real>(float_of_half(source[i]));
    } else {
      for (std::int64_t i = 0; i < dims; ++i) target[i] = element<Real>(tensor, from + i * step);
    }
    target += dims;
  }
  return {copy.data(), dims};
}

/// The queries [first_query, last_query) of one text, and the keys and values of one kv head that they see.
struct Unit {
  std::int64_t batch, kv_head;
  std::int64_t first_query, last_query;
  std::int64_t base;  ///< the first key; keys are counted from it
  std::int64_t keys;
  std::int64_t shift;  ///< position of the first key in the text: 0 where key 0 is among the keys

  bool has_first() const { return shift == 0; }
};

/// A task: queries of one unit, with all query heads of its kv head.
struct Block {
  std::int64_t unit;  ///< of the units that are processed
  std::int64_t begin, end;
  bool two_pass;  ///< each query sees keys before centre_keys alone: S is computed in two passes

  std::int64_t queries() const { return end - begin; }
};

struct Range {
  std::int64_t begin, end;
};

/// The largest power of two up to `size`, limited so that Real can hold it and its inverse. 1 for 0.
template <typename Real>
Real unit_of(Real size) {
  if (size == 0) return 1;
  constexpr int limit = std::numeric_limits<Real>::max_exponent - 2;
  return std::ldexp(Real{1}, std::clamp(std::ilogb(size), -limit, limit));
}

/// Sums over the packed values of one tile or of several.
template <typename Real>
struct TileSums {
  std::vector<double> offsets, squares;  // [width]
  std::vector<Real> largest;             // [width]

  void reset(std::int64_t width) {
    offsets.assign(static_cast<std::size_t>(width), 0);
    squares.assign(static_cast<std::size_t>(width), 0);
    largest.assign(static_cast<std::size_t>(width), 0);
  }
  void add(const TileSums& other) {
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      offsets[i] += other.offsets[i];
      squares[i] += other.squares[i];
      largest[i] = std::max(largest[i], other.largest[i]);
    }
  }
};

/// The keys and values of a unit in the form that the products read. As pack_keys_and_values() of
/// src/kernels/streaming/packed_values.h, whose comments say why: u = (v - c) / unit, c the mean of the first values.
template <typename Real>
class PackedUnit {
 public:
  Buffer<Real> keys;    ///< [panel, key_dim, panel columns]
  Buffer<Real> values;  ///< [tile, 2 * panels, tile_keys, panel columns]: u, then u^2
  Buffer<Real> centre, unit, scale, first_value, first_offset, inverse_variance;  ///< [width]
  Buffer<Real> early_values;  ///< [centre_keys, width]: (v - v_0) / unit of the first keys
  Real size = 1;              ///< the power of two at or below the largest |v|
  Extrema key_extrema, value_extrema;

  void begin(const AttentionCall& call, const Unit& chosen) {
    call_ = &call;
    unit_ = chosen;
    const PanelKernels<Real>& kernels = panel_kernels<Real>();
    width_ = kernels.padded(call.value.sizes[3]);
    tiles_ = blocks_of(unit_.keys, tile_keys);
    keys.reserve(blocks_of(unit_.keys, kernels.columns) * kernels.columns * call.key.sizes[3]);
    values.reserve(tiles_ * 2 * width_ * tile_keys);
    early_values.fill(centre_keys * width_, Real{0});
    for (Buffer<Real>* row : {&centre, &unit, &scale, &first_value, &first_offset, &inverse_variance})
      row->fill(width_, Real{0});
    key_extrema = value_extrema = {};
    tile_sums_.resize(static_cast<std::size_t>(tiles_));
    tile_extrema_.assign(static_cast<std::size_t>(tiles_), {});
    Buffer<Real> copy;
    fill_centre(copy);
    fill_scaled(copy);
  }

  std::int64_t tiles() const { return tiles_; }

  void pack_tile(std::int64_t tile, Buffer<Real>& copy) {
    const std::int64_t dims = call_->key.sizes[3], begin = tile * tile_keys,
                       end = std::min(begin + tile_keys, unit_.keys);
    const PanelKernels<Real>& kernels = panel_kernels<Real>();
    Extrema& key_seen = tile_extrema_[static_cast<std::size_t>(tile)].key;
    for (std::int64_t first = begin; first < end; first += kernels.columns) {
      const std::int64_t count = std::min(kernels.columns, end - first);
      kernels.pack_key_panel(rows_of(call_->key, unit_.batch, unit_.kv_head, unit_.base + first, count, copy), count,
                             dims, keys.data() + first * dims, key_seen);
    }
    pack_values(tile, copy, tile_sums_[static_cast<std::size_t>(tile)],
                tile_extrema_[static_cast<std::size_t>(tile)].value);
  }

  /// Sets the extrema and the variances. Called once, when all tiles are packed.
  void finish() {
    TileSums<Real> sums;
    sums.reset(width_);
    for (std::size_t tile = 0; tile < tile_sums_.size(); ++tile) {
      sums.add(tile_sums_[tile]);
      key_extrema.add(tile_extrema_[tile].key);
      value_extrema.add(tile_extrema_[tile].value);
    }
    if (!value_extrema.finite) return;  // the caller refuses such values; they have no unit
    size = unit_of(static_cast<Real>(value_extrema.magnitude()));
    constexpr auto factor = static_cast<Real>(1 << 30);
    const bool fit = std::all_of(sums.largest.begin(), sums.largest.begin() + call_->value.sizes[3], [](Real largest) {
      return largest == 0 || (largest >= 1 / factor && largest <= factor);
    });
    if (!fit) pack_in_other_units(sums);
    const auto count = static_cast<double>(unit_.keys);
    for (std::int64_t i = 0; i < call_->value.sizes[3]; ++i) {
      const double mean = sums.offsets[static_cast<std::size_t>(i)] / count;
      const double scaled = std::max(sums.squares[static_cast<std::size_t>(i)] / count - mean * mean, 0.0);
      inverse_variance.data()[i] = scaled > 0 ? static_cast<Real>(1 / scaled) : Real{0};
    }
  }

 private:
  struct TileExtrema {
    Extrema key, value;
  };

  Rows<const Real> value_rows(std::int64_t first, std::int64_t count, Buffer<Real>& copy) const {
    return rows_of(call_->value, unit_.batch, unit_.kv_head, unit_.base + first, count, copy);
  }

  void fill_centre(Buffer<Real>& copy) {
    const std::int64_t dims = call_->value.sizes[3], count = std::min(unit_.keys, centre_keys);
    const Rows<const Real> rows = value_rows(0, count, copy);
    Real *first = first_value.data(), *mean = centre.data();
    std::copy_n(rows.data, dims, first);
    std::vector<double> sum(static_cast<std::size_t>(dims));
    std::vector<Real> largest(static_cast<std::size_t>(dims));
    for (std::int64_t key = 0; key < count; ++key) {
      const Real* row = rows.row(key);
      for (std::int64_t i = 0; i < dims; ++i)
        sum[static_cast<std::size_t>(i)] += static_cast<double>(row[i]) - static_cast<double>(first[i]);
    }
    for (std::int64_t i = 0; i < dims; ++i)
      mean[i] = static_cast<Real>(static_cast<double>(first[i]) +
                                  sum[static_cast<std::size_t>(i)] / static_cast<double>(count));
    for (std::int64_t key = 0; key < count; ++key) {
      const Real* row = rows.row(key);
      for (std::int64_t i = 0; i < dims; ++i) {
        Real& so_far = largest[static_cast<std::size_t>(i)];
        so_far = std::max(so_far, std::abs(row[i] - mean[i]));
      }
    }
    for (std::int64_t i = 0; i < dims; ++i) {
      const Real here = largest[static_cast<std::size_t>(i)];
      unit.data()[i] = std::isfinite(here) ? unit_of(here) : Real{1};  // what is not finite is refused later
    }
  }

  void fill_scaled(Buffer<Real>& copy) {
    const std::int64_t dims = call_->value.sizes[3], count = std::min(unit_.keys, centre_keys);
    const Rows<const Real> rows = value_rows(0, count, copy);
    const Real* first = first_value.data();
    for (std::int64_t i = 0; i < dims; ++i) {
      scale.data()[i] = 1 / unit.data()[i];
      first_offset.data()[i] = (first[i] - centre.data()[i]) * scale.data()[i];
    }
    for (std::int64_t key = 0; key < count; ++key) {
      const Real* row = rows.row(key);
      Real* early = early_values.data() + key * width_;
      for (std::int64_t i = 0; i < dims; ++i) early[i] = (row[i] - first[i]) * scale.data()[i];
    }
  }

  void pack_values(std::int64_t tile, Buffer<Real>& copy, TileSums<Real>& sums, Extrema& seen) {
    const std::int64_t begin = tile * tile_keys, count = std::min(tile_keys, unit_.keys - begin);
    sums.reset(width_);
    panel_kernels<Real>().pack_value_rows(
        value_rows(begin, count, copy), count, call_->value.sizes[3], centre.data(), scale.data(), tile_keys,
        values.data() + tile * 2 * width_ * tile_keys,
        {.offsets = sums.offsets.data(), .squares = sums.squares.data(), .largest = sums.largest.data()}, seen);
  }

  void pack_in_other_units(TileSums<Real>& sums) {
    Buffer<Real> copy;
    const Rows<const Real> rows = value_rows(0, unit_.keys, copy);
    for (std::int64_t i = 0; i < call_->value.sizes[3]; ++i) {
      Real largest = 0;
      for (std::int64_t key = 0; key < unit_.keys; ++key)
        largest = std::max(largest, std::abs(rows.row(key)[i] - centre.data()[i]));
      unit.data()[i] = unit_of(largest);
    }
    fill_scaled(copy);
    sums.reset(width_);
    TileSums<Real> one;
    Extrema seen;
    for (std::int64_t tile = 0; tile < tiles_; ++tile) {
      pack_values(tile, copy, one, seen);
      sums.add(one);
    }
  }

  const AttentionCall* call_ = nullptr;
  Unit unit_{};
  std::int64_t width_ = 0, tiles_ = 0;
  std::vector<TileSums<Real>> tile_sums_;
  std::vector<TileExtrema> tile_extrema_;
};

/// -p ln p, and 0 at p = 0. `rest` is 1 - p: near p = 1 the logarithm of p itself would cancel.
double entropy_term(double p, double rest) {
  if (p > 0.5) return -p * std::log1p(-rest);
  return p > 0 ? -p * std::log(p) : 0;
}

/// The softmax of one query over all its keys.
struct RowMass {
  MassSplit split;
  double entropy;
  double maximum;
  double log_total;  ///< ln sum exp(s)
};

RowMass row_mass(const SoftmaxSums& others, double first_score) {
  const double maximum = std::max(others.maximum, first_score);
  const double others_total = others.total > 0 ? others.total * std::exp(others.maximum - maximum) : 0;
  const double first_total = std::exp(first_score - maximum), total = others_total + first_total;
  RowMass row{.split = {.first = first_total / total,
                        .others = others_total / total,
                        .n_eff = 1,
                        .n_eff_others = std::numeric_limits<double>::quiet_NaN()},
              .entropy = 0,
              .maximum = maximum,
              .log_total = maximum + std::log(total)};
  if (others.total == 0) return row;
  MassSplit& split = row.split;
  split.n_eff_others = std::max(1.0, others.total * others.total / others.total_squares);
  split.n_eff = std::max(1.0, 1 / (split.first * split.first + split.others * split.others / split.n_eff_others));
  const double entropy_others = std::max(0.0, std::log(others.total) - others.weighted_score / others.total);
  row.entropy =
      split.others * entropy_others + entropy_term(split.others, split.first) + entropy_term(split.first, split.others);
  return row;
}

/// Streams blocks of queries over their keys. Each worker has one. The steps are those of
/// src/kernels/streaming/streaming_block.cpp.
template <typename Real>
class BlockStream {
 public:
  BlockStream(const AttentionCall& call, const AttentionResult<Real>& result)
      : call_(call),
        result_(result),
        panels_(panel_kernels<Real>()),
        rows_table_(row_kernels<Real>()),
        heads_(call.query.sizes[1]),
        queries_count_(call.query.sizes[2]),
        group_(call.query.sizes[1] / call.key.sizes[1]),
        key_stride_(padded<Real>(call.key.sizes[3])),
        width_(panels_.padded(call.value.sizes[3])) {
    dimensions_.fill(dimension_rows * width_, Real{0});
    std::fill_n(dimension(prior_precision_row), width_, static_cast<Real>(call.prior_precision));
  }

  void run(const Unit& unit, const PackedUnit<Real>& packed, const Block& block) {
    unit_ = &unit;
    packed_ = &packed;
    block_ = block;
    load();
    Range all{std::numeric_limits<std::int64_t>::max(), 0};
    for (std::int64_t query = block.begin; query < block.end; ++query) {
      const Range seen = visible(query);
      all = {std::min(all.begin, seen.begin), std::max(all.end, seen.end)};
    }
    for (std::int64_t begin = all.begin - all.begin % tile_keys; begin < all.end; begin += tile_keys) {
      const Range keys{begin, std::min(begin + tile_keys, all.end)};
      score(keys);
      absorb(keys);
      if (block.two_pass) continue;
      panels_.add_weighted_values(std::ssize(strips_), strips_.data(), 2 * width_ / panels_.columns, tile_keys,
                                  {scores_.data(), tile_keys}, packed.values.data() + begin * 2 * width_,
                                  {accumulators_.data(), 2 * width_});
    }
    for (std::int64_t row = 0; row < rows_; ++row) finish_row(row);
  }

  const Extrema& query_extrema() const { return query_extrema_; }

 private:
  enum DimensionRow {
    offset_row,
    residual_others_row,
    zero_row,
    estimate_row,
    residual_row,
    precision_row,
    prior_precision_row,
    dimension_rows
  };

  Real* dimension(DimensionRow row) { return dimensions_.data() + static_cast<std::int64_t>(row) * width_; }
  std::int64_t query_of(std::int64_t row) const { return block_.begin + row / group_; }
  std::int64_t head_of(std::int64_t row) const { return unit_->kv_head * group_ + row % group_; }
  /// The keys of a query, counted from the first key of the unit.
  Range visible(std::int64_t query) const {
    const KeysOfQuery& keys = call_.keys_of_query[unit_->batch * queries_count_ + query];
    return {keys.begin - unit_->base, keys.end - unit_->base};
  }
  Range visible_in_tile(std::int64_t row, Range keys) const {
    const Range seen = visible(query_of(row));
    return {std::max(seen.begin, keys.begin) - keys.begin, std::min(seen.end, keys.end) - keys.begin};
  }
  TopScores<Real> top_scores(std::int64_t row) const {
    return {top_scores_.data() + row * call_.top_keys, top_keys_.data() + row * call_.top_keys, call_.top_keys};
  }

  void load() {
    rows_ = block_.queries() * group_;
    const std::int64_t strips = blocks_of(rows_, panels_.rows), whole = strips * panels_.rows;
    sums_.assign(static_cast<std::size_t>(rows_), SoftmaxSums{});
    strips_.assign(static_cast<std::size_t>(strips), {});
    begun_.assign(static_cast<std::size_t>(strips), false);
    queries_.reserve(whole * key_stride_);
    scores_.reserve(whole * tile_keys);
    accumulators_.reserve(whole * 2 * width_);
    for (std::int64_t row = 0; row < rows_; ++row) {
      const Rows<const Real> source = rows_of(call_.query, unit_->batch, head_of(row), query_of(row), 1, copy_);
      panels_.load_query(source.data, call_.key.sizes[3], static_cast<Real>(call_.scale),
                         queries_.data() + row * key_stride_, query_extrema_);
    }
    // Rows that fill up the last strip: zero queries have zero scores, which are never turned into weights.
    std::fill_n(queries_.data() + rows_ * key_stride_, (whole - rows_) * key_stride_, Real{0});
    first_scores_.fill(whole * first_keys, -std::numeric_limits<Real>::infinity());
    if (call_.top_keys == 0) return;
    top_scores_.reserve(rows_ * call_.top_keys);
    top_keys_.reserve(rows_ * call_.top_keys);
    for (std::int64_t row = 0; row < rows_; ++row) top_scores(row).clear();
  }

  void score(Range keys) {
    for (std::size_t strip = 0; strip < strips_.size(); ++strip) {
      Range range{tile_keys, 0};
      const std::int64_t first = static_cast<std::int64_t>(strip) * panels_.rows;
      for (std::int64_t row = first; row < std::min(first + panels_.rows, rows_); ++row) {
        const Range seen = visible_in_tile(row, keys);
        if (seen.begin >= seen.end) continue;
        range = {std::min(range.begin, seen.begin), std::max(range.end, seen.end)};
      }
      strips_[strip] = {range.begin, range.end};
      if (range.begin >= range.end || begun_[strip]) continue;
      begun_[strip] = strips_[strip].first = true;
    }
    panels_.score_tile(std::ssize(strips_), strips_.data(), call_.key.sizes[3], {queries_.data(), key_stride_},
                       packed_->keys.data() + keys.begin * call_.key.sizes[3], {scores_.data(), tile_keys});
    if (call_.soft_cap == 0) return;
    for (std::int64_t row = 0; row < rows_; ++row) {
      const StripRange range = strips_[static_cast<std::size_t>(row / panels_.rows)];
      if (range.begin >= range.end) continue;
      rows_table_.cap_scores(scores_.data() + row * tile_keys, range.begin, range.end,
                             static_cast<Real>(call_.soft_cap));
    }
  }

  void absorb(Range keys) {
    for (std::int64_t row = 0; row < rows_; ++row) {
      const StripRange strip = strips_[static_cast<std::size_t>(row / panels_.rows)];
      if (strip.begin >= strip.end) continue;
      Real* scores = scores_.data() + row * tile_keys;
      Range seen = visible_in_tile(row, keys);
      if (call_.top_keys > 0 && seen.begin < seen.end)
        top_scores(row).add(scores, seen.begin, seen.end, unit_->shift + keys.begin);
      if (keys.begin == 0 && unit_->shift < first_keys) {
        Real* first = first_scores_.data() + row * first_keys + unit_->shift;
        for (std::int64_t key = seen.begin; key < std::min(seen.end, first_keys - unit_->shift); ++key)
          first[key] = scores[key];
        if (unit_->has_first()) seen.begin = std::max<std::int64_t>(seen.begin, 1);
      }
      if (seen.begin < seen.end) {
        rows_table_.absorb_scores(sums_[static_cast<std::size_t>(row)], scores, seen.begin, seen.end, strip.begin,
                                  strip.end, accumulators_.data() + row * 2 * width_, 2 * width_);
      } else {
        std::fill(scores + strip.begin, scores + strip.end, Real{0});
      }
    }
  }

  DimensionRows<Real> dimensions_of_row(std::int64_t row) {
    Real *offset = dimension(offset_row), *residual_others = dimension(residual_others_row);
    const SoftmaxSums& sums = sums_[static_cast<std::size_t>(row)];
    if (block_.two_pass) {
      const Range seen = visible(query_of(row));
      rows_table_.two_pass_moments(scores_.data() + row * tile_keys + seen.begin,
                                   packed_->early_values.data() + seen.begin * width_, seen.end - seen.begin, width_,
                                   offset, residual_others);
    } else {
      rows_table_.moments_from_sums(accumulators_.data() + row * 2 * width_, width_, sums.total, offset,
                                    residual_others);
    }
    // The two-pass form must not use the common centre, which depends on later keys.
    return {.centre = block_.two_pass ? packed_->first_value.data() : packed_->centre.data(),
            .unit = packed_->unit.data(),
            .first_offset = block_.two_pass ? dimension(zero_row) : packed_->first_offset.data(),
            .inverse_variance = packed_->inverse_variance.data(),
            .prior_precision = dimension(prior_precision_row),
            .offset = offset,
            .residual_others = residual_others,
            .size = packed_->size,
            .estimate = dimension(estimate_row),
            .residual = dimension(residual_row),
            .precision = dimension(precision_row)};
  }

  void finish_row(std::int64_t row) {
    const std::int64_t head = head_of(row), query = query_of(row), batch = unit_->batch;
    const Real* first_scores = first_scores_.data() + row * first_keys;
    const SoftmaxSums& others = sums_[static_cast<std::size_t>(row)];
    const double first_score = unit_->has_first() ? static_cast<double>(first_scores[0]) : -infinite;
    const RowMass mass = row_mass(others, first_score);
    const DimensionRows<Real> rows = dimensions_of_row(row);
    QueryScalars scalars;
    scalars.entropy = mass.entropy;
    rows_table_.summarise_dimensions(call_.summary, rows, call_.value.sizes[3], mass.split, call_.priors, scalars);

    double keys_share = 1, sink_mass = std::numeric_limits<double>::quiet_NaN();
    if (call_.sink_logit != nullptr) {
      const double difference = call_.sink_logit[head] - mass.log_total;
      keys_share = 1 / (1 + std::exp(difference));
      sink_mass = 1 / (1 + std::exp(-difference));
    }
    const std::int64_t index = (batch * heads_ + head) * queries_count_ + query,
                       step = call_.query.sizes[0] * heads_ * queries_count_;
    Real* target = result_.scalars + index;
    const auto store = [&](double value) {
      *target = static_cast<Real>(value);
      target += step;
    };
#define GAINLENS_STORE(name, ...) store(scalars.name);
    GAINLENS_QUERY_SCALARS(GAINLENS_STORE)
#undef GAINLENS_STORE
    store(mass.maximum);
    store(mass.log_total);
    store(sink_mass);
    store(mass.split.first);

    if (call_.first_masses > 0) {
      std::array<double, first_keys> found;
      rows_table_.masses_of_first(first_scores, mass.log_total, keys_share, found.data());
      for (std::int64_t key = 0; key < call_.first_masses; ++key)
        result_.first_mass[index * call_.first_masses + key] = static_cast<Real>(found[static_cast<std::size_t>(key)]);
    }
    if (call_.top_keys > 0) {
      const TopScores<Real> top = top_scores(row);
      for (std::int64_t rank = 0; rank < top.count && top.keys[rank] >= 0; ++rank) {
        result_.top_key[index * top.count + rank] = top.keys[rank];
        result_.top_weight[index * top.count + rank] =
            static_cast<Real>(keys_share * std::exp(static_cast<double>(top.scores[rank]) - mass.log_total));
      }
    }
    Real* output = result_.output + ((batch * queries_count_ + query) * heads_ + head) * call_.value.sizes[3];
    const auto share = static_cast<Real>(keys_share);
    for (std::int64_t i = 0; i < call_.value.sizes[3]; ++i) output[i] = rows.estimate[i] * share;
  }

  const AttentionCall& call_;
  const AttentionResult<Real>& result_;
  const PanelKernels<Real>& panels_;
  const RowKernels<Real>& rows_table_;
  const std::int64_t heads_, queries_count_, group_, key_stride_, width_;
  const Unit* unit_ = nullptr;
  const PackedUnit<Real>* packed_ = nullptr;
  Block block_{};
  std::int64_t rows_ = 0;
  Buffer<Real> queries_;         // [row, key_stride]
  Buffer<Real> scores_;          // [row, tile_keys]: scores, then weights
  Buffer<double> accumulators_;  // [row, 2, width]
  Buffer<Real> first_scores_;    // [row, first_keys]
  Buffer<Real> dimensions_;      // [DimensionRow, width]
  Buffer<Real> top_scores_, copy_;
  Buffer<std::int64_t> top_keys_;
  std::vector<SoftmaxSums> sums_;   // [row]
  std::vector<StripRange> strips_;  // [strip]
  std::vector<bool> begun_;         // [strip] whether its sums have been set
  Extrema query_extrema_;
};

/// The texts of a batch row: consecutive queries with the same origin.
std::vector<Unit> units_of(const AttentionCall& call) {
  std::vector<Unit> units;
  const std::int64_t queries = call.query.sizes[2];
  for (std::int64_t batch = 0; batch < call.query.sizes[0]; ++batch) {
    const KeysOfQuery* keys = call.keys_of_query + batch * queries;
    for (std::int64_t first = 0; first < queries;) {
      std::int64_t last = first, end = 0;
      for (; last < queries; ++last) {
        if (keys[last].begin >= keys[last].end) continue;
        if (end > 0 && keys[last].origin != keys[first].origin) break;
        if (end == 0) first = last;
        end = std::max(end, keys[last].end);
      }
      if (end > 0) {
        const std::int64_t origin = keys[first].origin, base = std::max<std::int64_t>(origin, 0);
        for (std::int64_t kv_head = 0; kv_head < call.key.sizes[1]; ++kv_head) {
          units.push_back({.batch = batch,
                           .kv_head = kv_head,
                           .first_query = first,
                           .last_query = last,
                           .base = base,
                           .keys = end - base,
                           .shift = base - origin});
        }
      }
      first = last;
    }
  }
  return units;
}

/// Appends the blocks of a unit, the last queries first: under causality they take longest.
void append_blocks(const AttentionCall& call, const Unit& unit, std::int64_t index, std::vector<Block>& blocks) {
  const std::int64_t group = call.query.sizes[1] / call.key.sizes[1];
  // As queries_per_block() in src/kernels/streaming/query_blocks.cpp.
  const std::int64_t rows = call.key.sizes[3] + 4 * call.value.sizes[3] > 640 ? 60 : 120;
  const std::int64_t step = std::max<std::int64_t>(1, rows / group);
  const KeysOfQuery* keys = call.keys_of_query + unit.batch * call.query.sizes[2];
  const auto sees_keys = [&](std::int64_t query) { return keys[query].begin < keys[query].end; };
  const auto early = [&](std::int64_t query) { return keys[query].end - unit.base <= centre_keys; };
  const auto begin_of_unit = static_cast<std::ptrdiff_t>(blocks.size());
  for (std::int64_t begin = unit.first_query; begin < unit.last_query;) {
    if (!sees_keys(begin)) {
      ++begin;
      continue;
    }
    std::int64_t end = begin + 1;
    while (end < std::min(begin + step, unit.last_query) && sees_keys(end) && early(end) == early(begin)) ++end;
    blocks.push_back({.unit = index, .begin = begin, .end = end, .two_pass = early(begin)});
    begin = end;
  }
  std::reverse(blocks.begin() + begin_of_unit, blocks.end());
}

[[noreturn]] void refuse(const std::string& text) {
  throw std::runtime_error("attention_statistics: " + text);
}

void check_finite(const char* name, const Extrema& seen) {
  if (!seen.finite)
    refuse(std::string(name) + " holds NaN or infinity; earlier activations overflowed or a weight is damaged");
}

/// Refuses numbers whose products may overflow, as src/kernels/attention_inputs.cpp does.
template <typename Real>
void check_magnitudes(const AttentionCall& call, const Extrema& query, const Extrema& key, const Extrema& value) {
  const double limit = 1e-3 * static_cast<double>(std::numeric_limits<Real>::max());
  const double score = query.magnitude() * key.magnitude() * static_cast<double>(call.key.sizes[3]) *
                       std::max(1.0, std::abs(call.scale));
  const char* type = sizeof(Real) == sizeof(double) ? "float64" : "float32; give float64 tensors";
  std::ostringstream text;
  if (!(score < limit)) {
    text << "query up to " << query.magnitude() << " times key up to " << key.magnitude() << " may overflow " << type;
    refuse(text.str());
  }
  const double spread = value.largest - value.smallest, largest = value.magnitude();
  if (!(std::max(spread * spread, largest * largest * static_cast<double>(call.value.sizes[3])) < limit)) {
    text << "value from " << value.smallest << " to " << value.largest << ": their squares may overflow " << type;
    refuse(text.str());
  }
}

/// Only few units are packed at a time, so that the packed form is still in the cache when it is read; their number is
/// chosen so that each worker has this many blocks to choose from.
constexpr std::int64_t blocks_per_worker = 32;

}  // namespace

std::string scalar_names() {
  std::string names;
#define GAINLENS_NAME(name, ...) names += #name " ";
  GAINLENS_QUERY_SCALARS(GAINLENS_NAME)
#undef GAINLENS_NAME
  return names + "max_logit lse sink_logit_mass first_weight";
}

std::int64_t scalar_count() {
  std::int64_t count = 4;
#define GAINLENS_COUNT(...) ++count;
  GAINLENS_QUERY_SCALARS(GAINLENS_COUNT)
#undef GAINLENS_COUNT
  return count;
}

template <typename Real>
void attention_statistics(const AttentionCall& call, const Threads& threads, const AttentionResult<Real>& result) {
  const std::vector<Unit> units = units_of(call);
  const auto workers = static_cast<std::size_t>(threads.workers);
  std::vector<std::unique_ptr<BlockStream<Real>>> streams(workers);
  std::vector<Buffer<Real>> copies(workers);
  std::vector<PackedUnit<Real>> packed;
  Extrema query_seen, key_seen, value_seen;
  for (std::size_t first = 0; first < units.size();) {
    std::vector<Block> blocks;
    std::size_t last = first;
    while (last < units.size() && std::ssize(blocks) < blocks_per_worker * threads.workers) {
      append_blocks(call, units[last], static_cast<std::int64_t>(last - first), blocks);
      ++last;
    }
    const std::size_t count = last - first;
    if (packed.size() < count) packed.resize(count);
    threads.run(static_cast<std::int64_t>(count), [&](std::int64_t, std::int64_t unit) {
      packed[static_cast<std::size_t>(unit)].begin(call, units[first + static_cast<std::size_t>(unit)]);
    });
    std::vector<std::pair<std::size_t, std::int64_t>> tiles;
    for (std::size_t unit = 0; unit < count; ++unit)
      for (std::int64_t tile = 0; tile < packed[unit].tiles(); ++tile) tiles.emplace_back(unit, tile);
    threads.run(std::ssize(tiles), [&](std::int64_t worker, std::int64_t task) {
      const auto [unit, tile] = tiles[static_cast<std::size_t>(task)];
      packed[unit].pack_tile(tile, copies[static_cast<std::size_t>(worker)]);
    });
    for (std::size_t unit = 0; unit < count; ++unit) {
      packed[unit].finish();
      key_seen.add(packed[unit].key_extrema);
      value_seen.add(packed[unit].value_extrema);
    }
    check_finite("key", key_seen);
    check_finite("value", value_seen);
    threads.run(std::ssize(blocks), [&](std::int64_t worker, std::int64_t task) {
      auto& stream = streams[static_cast<std::size_t>(worker)];
      if (stream == nullptr) stream = std::make_unique<BlockStream<Real>>(call, result);
      const Block& block = blocks[static_cast<std::size_t>(task)];
      const auto unit = static_cast<std::size_t>(block.unit);
      stream->run(units[first + unit], packed[unit], block);
    });
    first = last;
  }
  if (units.empty()) return;
  for (const auto& stream : streams)
    if (stream != nullptr) query_seen.add(stream->query_extrema());
  check_finite("query", query_seen);
  check_magnitudes<Real>(call, query_seen, key_seen, value_seen);
}

template void attention_statistics<float>(const AttentionCall&, const Threads&, const AttentionResult<float>&);
template void attention_statistics<double>(const AttentionCall&, const Threads&, const AttentionResult<double>&);

}  // namespace gainlens::python
