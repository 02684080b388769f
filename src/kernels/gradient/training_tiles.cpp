#include "kernels/gradient/training_tiles.h"

#include "kernels/vector_dispatch.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gradient/training_tiles.cpp"
// Highway wants its headers in this order.
// clang-format off
#include "hwy/foreach_target.h"  // includes this file once for each instruction set
#include "hwy/highway.h"
#include "kernels/power_of_two-inl.h"
#include "kernels/strip_products-inl.h"
#include "kernels/stored_vectors-inl.h"
#include "kernels/vector_table-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace gainlens::kernels::HWY_NAMESPACE {
namespace {  // other files of vector code may use the same names
namespace hn = hwy::HWY_NAMESPACE;

using Floats = Tag<float>;
using Vector = hn::Vec<Floats>;

constexpr std::int64_t lanes = Lanes<float>();

/// Columns of a panel. A tile of the forward pass is one panel wide.
constexpr std::int64_t panel_columns = PanelColumns<float>();

/// Rows of a strip two vectors wide. Fewer than strip_rows: they divide a head of 16 dimensions, and the sums of 8
/// multiplications are enough to hide the time that a multiplication takes.
constexpr std::int64_t pair_rows = std::min<std::int64_t>(strip_rows >= 12 ? 8 : 4, panel_columns);

/// Rows of a strip one vector wide: the rows of packed values if a head is as wide as a vector.
constexpr std::int64_t single_rows = std::min<std::int64_t>(2 * pair_rows, panel_columns);
static_assert(key_padding % single_rows == 0 && block_queries % panel_columns == 0);

/// Queries whose S is summed together: sums, means, an offset and a weight fill the registers.
constexpr std::int64_t offset_queries = strip_rows >= 12 ? 4 : 2;
static_assert(panel_columns % offset_queries == 0);

/// Keys of a tile. The tiles, and the rows of keys and queries for them, fit in the first-level cache if heads are
/// small.
constexpr std::int64_t forward_keys = 128, backward_keys = 64;

template <std::int64_t rows, std::int64_t vectors>
using Sums = Vector[rows][vectors];

/// sums[i, j] = sum over k of left[i row_step + k inner_step] right[k, j].
template <std::int64_t rows, std::int64_t vectors>
HWY_INLINE void Multiply(std::int64_t inner, const float* HWY_RESTRICT left, std::int64_t row_step,
                         std::int64_t inner_step, const float* HWY_RESTRICT right, std::int64_t right_stride,
                         Sums<rows, vectors>& sums) {
  const Floats tag;
#pragma GCC unroll 16
  for (std::int64_t i = 0; i < rows; ++i) {
#pragma GCC unroll 4
    for (std::int64_t j = 0; j < vectors; ++j) sums[i][j] = hn::Zero(tag);
  }
  for (std::int64_t k = 0; k < inner; ++k) {
    Vector columns[vectors];
#pragma GCC unroll 4
    for (std::int64_t j = 0; j < vectors; ++j) columns[j] = hn::Load(tag, right + k * right_stride + j * lanes);
#pragma GCC unroll 16
    for (std::int64_t i = 0; i < rows; ++i) {
      const auto element = hn::Set(tag, left[i * row_step + k * inner_step]);
#pragma GCC unroll 4
      for (std::int64_t j = 0; j < vectors; ++j) sums[i][j] = hn::MulAdd(element, columns[j], sums[i][j]);
    }
  }
}

/// 2^x for x up to about 0, and 0 below -126. NaN gives NaN.
HWY_INLINE Vector PowerOfTwo(Vector x) {
  const Floats tag;
  const hn::RebindToSigned<Floats> integer;
  // Adding 1.5 2^23 rounds to the nearest integer n and leaves it in the lowest bits; 127 makes it an exponent.
  const auto rounding = hn::Set(tag, 12582912.0F + 127.0F);
  const auto shifted = hn::Add(x, rounding);
  const auto fraction = hn::Sub(x, hn::Sub(shifted, rounding));  // in [-1/2, 1/2]
  const auto power = PowerOfFraction(fraction);
  // A product, not a sum of exponents: NaN stays NaN.
  const auto scale = hn::BitCast(tag, hn::ShiftLeft<23>(hn::BitCast(integer, shifted)));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(tag, -126.0F)), hn::Mul(power, scale));
}

/// Which columns of a tile see a key.
struct Visibility {
  std::int64_t first_query;  // position of column 0
  std::int64_t key_end;      // keys from this position on are seen by none
  bool causal;

  /// Whether every column from `first_column` on sees the keys [begin, end).
  HWY_INLINE bool all(std::int64_t end, std::int64_t first_column) const {
    return end <= key_end && (!causal || end - 1 <= first_query + first_column);
  }
  /// Whether the columns of a vector see a key.
  HWY_INLINE hn::Mask<Floats> seen(std::int64_t key, std::int64_t first_column) const {
    const Floats tag;
    // The first column that sees it; there are no more columns than block_queries.
    const std::int64_t first = key >= key_end ? block_queries : causal ? key - first_query : 0;
    return hn::Ge(hn::Iota(tag, static_cast<float>(first_column)), hn::Set(tag, static_cast<float>(first)));
  }
};

/// What is added to the scores of some keys with the columns of a tile.
struct Biases {
  const float* row_biases;   // of the keys, from row 0 on
  float slope;               // of a place
  std::int64_t first_key;    // position of row 0
  std::int64_t first_query;  // position of column 0

  HWY_INLINE Vector distance(std::int64_t row, std::int64_t column) const {
    const Floats tag;
    return hn::Abs(hn::Iota(tag, static_cast<float>(first_query + column - first_key - row)));
  }
  HWY_INLINE Vector added(Vector score, std::int64_t row, std::int64_t column) const {
    const Floats tag;
    const auto biased = hn::Add(score, hn::Set(tag, row_biases[row]));
    return hn::MulAdd(hn::Set(tag, slope), distance(row, column), biased);
  }
};

/// The elements from index i on, 0 after `dims` elements.
HWY_INLINE Vector LoadRow(const float* HWY_RESTRICT row, std::int64_t i, std::int64_t dims) {
  return LoadStored(ElementType::float32, row, i, std::min(lanes, dims - i));
}

void Pack(const float* HWY_RESTRICT source, std::int64_t stride, std::int64_t count, std::int64_t dims,
          std::int64_t rows, float* HWY_RESTRICT to) {
  const Floats tag;
  const std::int64_t width = packed_width(dims), filled = rounded_up(dims, lanes);
  for (std::int64_t row = 0; row < count; ++row) {
    float* const place = to + row * width;
    for (std::int64_t i = 0; i < filled; i += lanes) hn::Store(LoadRow(source + row * stride, i, dims), tag, place + i);
    for (std::int64_t i = filled; i < width; i += lanes) hn::Store(hn::Zero(tag), tag, place + i);
  }
  for (std::int64_t i = count * width; i < rows * width; i += lanes) hn::Store(hn::Zero(tag), tag, to + i);
}

void Unpack(const float* HWY_RESTRICT packed, std::int64_t count, std::int64_t dims, float factor,
            float* HWY_RESTRICT to, std::int64_t stride) {
  const Floats tag;
  const auto scale = hn::Set(tag, factor);
  const std::int64_t width = packed_width(dims), whole = dims / lanes * lanes;
  for (std::int64_t row = 0; row < count; ++row) {
    const float* const from = packed + row * width;
    float* const place = to + row * stride;
    for (std::int64_t i = 0; i < whole; i += lanes) hn::StoreU(hn::Mul(scale, hn::Load(tag, from + i)), tag, place + i);
    for (std::int64_t i = whole; i < dims; ++i) place[i] = factor * from[i];
  }
}

void RowProducts(const float* HWY_RESTRICT left, const float* HWY_RESTRICT right, std::int64_t right_stride,
                 std::int64_t count, std::int64_t dims, float* HWY_RESTRICT products) {
  const Floats tag;
  const std::int64_t width = packed_width(dims);
  for (std::int64_t row = 0; row < count; ++row) {
    auto sum = hn::Zero(tag);
    for (std::int64_t i = 0; i < dims; i += lanes)
      sum = hn::MulAdd(hn::Load(tag, left + row * width + i), LoadRow(right + row * right_stride, i, dims), sum);
    products[row] = hn::GetLane(hn::SumOfLanes(tag, sum));
  }
}

/// result[i] = factors[i] result[i] + sum over k of left[i row_step + k inner_step] right[k], for `rows` rows of
/// `vectors` vectors. Without factors they are 1. Each sum is complete before it is added to the result: so rounding
/// errors grow with the number of tiles, not with the number of keys.
template <std::int64_t rows, std::int64_t vectors>
HWY_INLINE void AddStrip(std::int64_t inner, const float* HWY_RESTRICT left, std::int64_t row_step,
                         std::int64_t inner_step, const float* HWY_RESTRICT right, std::int64_t width,
                         const float* factors, float* HWY_RESTRICT result) {
  const Floats tag;
  Sums<rows, vectors> sums;
  Multiply<rows, vectors>(inner, left, row_step, inner_step, right, width, sums);
#pragma GCC unroll 16
  for (std::int64_t i = 0; i < rows; ++i) {
#pragma GCC unroll 4
    for (std::int64_t j = 0; j < vectors; ++j) {
      float* place = result + i * width + j * lanes;
      const auto before = hn::Load(tag, place);
      hn::Store(
          factors != nullptr ? hn::MulAdd(hn::Set(tag, factors[i]), before, sums[i][j]) : hn::Add(before, sums[i][j]),
          tag, place);
    }
  }
}

/// AddStrip for `rows` rows (a multiple of key_padding or of panel_columns) of packed numbers.
HWY_INLINE void AddProduct(std::int64_t rows, std::int64_t inner, const float* HWY_RESTRICT left, std::int64_t row_step,
                           std::int64_t inner_step, const float* HWY_RESTRICT right, std::int64_t width,
                           const float* factors, float* HWY_RESTRICT result) {
  std::int64_t column = 0;
  for (; column + 2 * lanes <= width; column += 2 * lanes) {
    for (std::int64_t i = 0; i < rows; i += pair_rows)
      AddStrip<pair_rows, 2>(inner, left + i * row_step, row_step, inner_step, right + column, width,
                             factors != nullptr ? factors + i : nullptr, result + i * width + column);
  }
  if (column == width) return;
  for (std::int64_t i = 0; i < rows; i += single_rows)
    AddStrip<single_rows, 1>(inner, left + i * row_step, row_step, inner_step, right + column, width,
                             factors != nullptr ? factors + i : nullptr, result + i * width + column);
}

/// Scores of pair_rows keys from position `key` on with a panel of queries. Updates the largest score of each query.
template <bool masked, bool biased>
HWY_INLINE void ScoreStrip(const PackedKeys& keys, std::int64_t key, const float* HWY_RESTRICT queries,
                           const Visibility& visibility, const Biases& biases, float* HWY_RESTRICT scores,
                           Vector (&maxima)[2]) {
  const Floats tag;
  const std::int64_t width = packed_width(keys.dims);
  Sums<pair_rows, 2> sums;
  Multiply<pair_rows, 2>(keys.dims, keys.keys + key * width, width, 1, queries, panel_columns, sums);
#pragma GCC unroll 16
  for (std::int64_t i = 0; i < pair_rows; ++i) {
#pragma GCC unroll 4
    for (std::int64_t j = 0; j < 2; ++j) {
      auto score = sums[i][j];
      if constexpr (biased) score = biases.added(score, key + i, j * lanes);
      if constexpr (masked)
        score = hn::IfThenElse(visibility.seen(key + i, j * lanes), score,
                               hn::Set(tag, -std::numeric_limits<float>::infinity()));
      maxima[j] = hn::Max(maxima[j], score);
      hn::Store(score, tag, scores + i * panel_columns + j * lanes);
    }
  }
}

void Attend(const QueryPanel& panel, const PackedKeys& keys) {
  const Floats tag;
  const std::int64_t width = packed_width(keys.dims);
  const std::int64_t end = panel.causal ? std::min(keys.count, panel.first + panel.count) : keys.count;
  const Visibility visibility{panel.first, end, panel.causal};
  HWY_ALIGN float tile[forward_keys * panel_columns];
  HWY_ALIGN float factors[panel_columns];
  Vector maxima[2], totals[2];
  for (std::int64_t j = 0; j < 2; ++j) {
    maxima[j] = hn::Set(tag, -std::numeric_limits<float>::infinity());
    totals[j] = hn::Zero(tag);
  }
  std::fill_n(panel.output, panel_columns * width, 0.0F);
  for (std::int64_t first = 0; first < end; first += forward_keys) {
    const std::int64_t count = std::min(forward_keys, end - first);
    Vector largest[2] = {maxima[0], maxima[1]};
    for (std::int64_t row = 0; row < count; row += pair_rows) {
      float* scores = tile + row * panel_columns;
      visibility.all(first + row + pair_rows, 0)
          ? ScoreStrip<false, false>(keys, first + row, panel.transposed, visibility, {}, scores, largest)
          : ScoreStrip<true, false>(keys, first + row, panel.transposed, visibility, {}, scores, largest);
    }
    // Every query sees key 0, so the largest score is -inf only if a score is; then the result is NaN, as is right.
    for (std::int64_t j = 0; j < 2; ++j) {
      const auto factor = PowerOfTwo(hn::Sub(maxima[j], largest[j]));
      hn::Store(factor, tag, factors + j * lanes);
      maxima[j] = largest[j];
      auto total = hn::Zero(tag);
      for (std::int64_t row = 0; row < count; ++row) {
        float* place = tile + row * panel_columns + j * lanes;
        const auto weight = PowerOfTwo(hn::Sub(hn::Load(tag, place), maxima[j]));
        total = hn::Add(total, weight);
        hn::Store(weight, tag, place);
      }
      totals[j] = hn::MulAdd(totals[j], factor, total);
    }
    AddProduct(panel_columns, count, tile, 1, panel_columns, keys.values + first * width, width, factors, panel.output);
  }
  for (std::int64_t j = 0; j < 2; ++j) {
    hn::StoreU(maxima[j], tag, panel.maxima + j * lanes);
    const auto inverse = hn::Div(hn::Set(tag, 1.0F), totals[j]);
    hn::StoreU(inverse, tag, panel.inverse_totals + j * lanes);
  }
  for (std::int64_t query = 0; query < panel.count; ++query) {
    const auto inverse = hn::Set(tag, panel.inverse_totals[query]);
    for (std::int64_t i = query * width; i < (query + 1) * width; i += lanes)
      hn::Store(hn::Mul(inverse, hn::Load(tag, panel.output + i)), tag, panel.output + i);
  }
}

/// residual[i] += sum over keys k of weights[k, i] (values[k] - mean[i])^2, for `queries` queries i and `vectors`
/// vectors of a row. The sum is complete before it is added, as in AddStrip.
template <std::int64_t queries, std::int64_t vectors>
HWY_INLINE void AddOffsets(std::int64_t keys, const float* HWY_RESTRICT weights, const float* HWY_RESTRICT values,
                           const float* HWY_RESTRICT mean, std::int64_t width, float* HWY_RESTRICT residual) {
  const Floats tag;
  Sums<queries, vectors> sums, means;
#pragma GCC unroll 4
  for (std::int64_t i = 0; i < queries; ++i) {
#pragma GCC unroll 4
    for (std::int64_t j = 0; j < vectors; ++j) {
      sums[i][j] = hn::Zero(tag);
      means[i][j] = hn::Load(tag, mean + i * width + j * lanes);
    }
  }
  for (std::int64_t key = 0; key < keys; ++key) {
#pragma GCC unroll 4
    for (std::int64_t j = 0; j < vectors; ++j) {
      const auto value = hn::Load(tag, values + key * width + j * lanes);
#pragma GCC unroll 4
      for (std::int64_t i = 0; i < queries; ++i) {
        const auto offset = hn::Sub(value, means[i][j]);
        const auto weighted = hn::Mul(hn::Set(tag, weights[key * panel_columns + i]), offset);
        sums[i][j] = hn::MulAdd(weighted, offset, sums[i][j]);
      }
    }
  }
#pragma GCC unroll 4
  for (std::int64_t i = 0; i < queries; ++i) {
#pragma GCC unroll 4
    for (std::int64_t j = 0; j < vectors; ++j) {
      float* place = residual + i * width + j * lanes;
      hn::Store(hn::Add(hn::Load(tag, place), sums[i][j]), tag, place);
    }
  }
}

/// rows *= factors[row], for the rows of a panel.
HWY_INLINE void ScaleRows(const float* factors, std::int64_t width, float* HWY_RESTRICT rows) {
  const Floats tag;
  for (std::int64_t row = 0; row < panel_columns; ++row) {
    const auto factor = hn::Set(tag, factors[row]);
    for (std::int64_t i = row * width; i < (row + 1) * width; i += lanes)
      hn::Store(hn::Mul(factor, hn::Load(tag, rows + i)), tag, rows + i);
  }
}

void AttendWithMoments(const QueryPanel& panel, const PackedKeys& keys, const PanelMoments& moments) {
  const Floats tag;
  const std::int64_t width = packed_width(keys.value_dims);
  const std::int64_t end = panel.causal ? std::min(keys.count, panel.first + panel.count) : keys.count;
  const Visibility visibility{panel.first, end, panel.causal};
  const Biases biases{keys.biases, keys.distance_slope, keys.first, panel.first};
  Vector maxima[2];
  for (auto& maximum : maxima) maximum = hn::Set(tag, -std::numeric_limits<float>::infinity());
  for (std::int64_t row = 0; row < end; row += pair_rows) {
    float* const scores = moments.scores + row * panel_columns;
    visibility.all(row + pair_rows, 0)
        ? ScoreStrip<false, true>(keys, row, panel.transposed, visibility, biases, scores, maxima)
        : ScoreStrip<true, true>(keys, row, panel.transposed, visibility, biases, scores, maxima);
  }
  Vector totals[2], squares[2];
  for (std::int64_t j = 0; j < 2; ++j) {
    totals[j] = squares[j] = hn::Zero(tag);
    for (std::int64_t first = 0; first < end; first += forward_keys) {
      auto total = hn::Zero(tag), square = hn::Zero(tag);
      for (std::int64_t row = first; row < std::min(first + forward_keys, end); ++row) {
        float* const place = moments.scores + row * panel_columns + j * lanes;
        const auto weight = PowerOfTwo(hn::Sub(hn::Load(tag, place), maxima[j]));
        total = hn::Add(total, weight);
        square = hn::MulAdd(weight, weight, square);
        hn::Store(weight, tag, place);
      }
      totals[j] = hn::Add(totals[j], total);
      squares[j] = hn::Add(squares[j], square);
    }
    const auto one = hn::Set(tag, 1.0F), inverse = hn::Div(one, totals[j]);
    hn::StoreU(maxima[j], tag, panel.maxima + j * lanes);
    hn::StoreU(inverse, tag, panel.inverse_totals + j * lanes);
    const auto share = hn::Mul(hn::Mul(squares[j], inverse), inverse);
    hn::StoreU(hn::Max(hn::Div(one, share), one), tag, moments.n_eff + j * lanes);
  }
  std::fill_n(panel.output, panel_columns * width, 0.0F);
  std::fill_n(moments.residual, panel_columns * width, 0.0F);
  const auto for_tiles = [&](const auto& visit) {
    for (std::int64_t first = 0; first < end; first += forward_keys)
      visit(std::min(forward_keys, end - first), moments.scores + first * panel_columns, keys.values + first * width);
  };
  for_tiles([&](std::int64_t count, const float* weights, const float* values) {
    AddProduct(panel_columns, count, weights, 1, panel_columns, values, width, nullptr, panel.output);
  });
  ScaleRows(panel.inverse_totals, width, panel.output);
  for_tiles([&](std::int64_t count, const float* weights, const float* values) {
    for (std::int64_t query = 0; query < panel_columns; query += offset_queries) {
      const auto add = [&](auto vectors, std::int64_t column) {
        AddOffsets<offset_queries, vectors()>(count, weights + query, values + column,
                                              panel.output + query * width + column, width,
                                              moments.residual + query * width + column);
      };
      std::int64_t column = 0;
      for (; column + 2 * lanes <= width; column += 2 * lanes) add(std::integral_constant<std::int64_t, 2>(), column);
      if (column < width) add(std::integral_constant<std::int64_t, 1>(), column);
    }
  });
  ScaleRows(panel.inverse_totals, width, moments.residual);
}

/// The weights P, and dS = P (dO V^T - delta), of pair_rows keys with a panel of queries. With biases: dS = P (dO V^T +
/// square_gradients P - delta).
template <bool masked, bool biased>
HWY_INLINE void GradientStrip(const QueryBlock& block, const PackedKeys& keys, std::int64_t row, std::int64_t column,
                              const Visibility& visibility, const Biases& biases, float* HWY_RESTRICT weights,
                              float* HWY_RESTRICT score_gradients) {
  const Floats tag;
  const std::int64_t width = packed_width(keys.dims);
  Sums<pair_rows, 2> sums;
  Multiply<pair_rows, 2>(keys.dims, keys.keys + row * width, width, 1, block.transposed_queries + column, block_queries,
                         sums);
#pragma GCC unroll 4
  for (std::int64_t j = 0; j < 2; ++j) {
    const auto maximum = hn::LoadU(tag, block.maxima + column + j * lanes),
               inverse = hn::LoadU(tag, block.inverse_totals + column + j * lanes);
#pragma GCC unroll 16
    for (std::int64_t i = 0; i < pair_rows; ++i) {
      auto score = sums[i][j];
      if constexpr (biased) score = biases.added(score, row + i, column + j * lanes);
      auto weight = hn::Mul(PowerOfTwo(hn::Sub(score, maximum)), inverse);
      if constexpr (masked)
        weight = hn::IfThenElseZero(visibility.seen(keys.first + row + i, column + j * lanes), weight);
      hn::Store(weight, tag, weights + i * block_queries + j * lanes);
    }
  }
  const std::int64_t value_width = packed_width(keys.value_dims);
  Multiply<pair_rows, 2>(keys.value_dims, keys.values + row * value_width, value_width, 1,
                         block.transposed_gradients + column, block_queries, sums);
#pragma GCC unroll 4
  for (std::int64_t j = 0; j < 2; ++j) {
    const auto delta = hn::LoadU(tag, block.deltas + column + j * lanes);
#pragma GCC unroll 16
    for (std::int64_t i = 0; i < pair_rows; ++i) {
      const std::int64_t place = i * block_queries + j * lanes;
      const auto weight = hn::Load(tag, weights + place);
      auto effect = sums[i][j];
      if constexpr (biased)
        effect = hn::MulAdd(hn::LoadU(tag, block.square_gradients + column + j * lanes), weight, effect);
      hn::Store(hn::Mul(weight, hn::Sub(effect, delta)), tag, score_gradients + place);
    }
  }
}

/// Adds the gradients of the biases of some keys, from dS of all columns.
/// @param row  of the first of them
HWY_INLINE void AddBiasGradients(const Biases& biases, std::int64_t row, std::int64_t count, std::int64_t begin,
                                 std::int64_t end, const float* HWY_RESTRICT score_gradients,
                                 const KeyGradients& gradients) {
  const Floats tag;
  auto slope = hn::Zero(tag);
  for (std::int64_t i = 0; i < count; ++i) {
    auto sum = hn::Zero(tag);
    for (std::int64_t column = begin; column < end; column += lanes) {
      const auto gradient = hn::Load(tag, score_gradients + i * block_queries + column);
      sum = hn::Add(sum, gradient);
      slope = hn::MulAdd(gradient, biases.distance(row + i, column), slope);
    }
    gradients.biases[row + i] += hn::GetLane(hn::SumOfLanes(tag, sum));
  }
  *gradients.distance_slope += hn::GetLane(hn::SumOfLanes(tag, slope));
}

template <bool biased>
HWY_INLINE void AddGradientsOf(const QueryBlock& block, const PackedKeys& keys, const KeyGradients& gradients) {
  const std::int64_t width = packed_width(keys.dims), value_width = packed_width(keys.value_dims);
  const Biases biases{keys.biases, keys.distance_slope, keys.first, block.first};
  const std::int64_t columns = rounded_up(block.count, panel_columns);
  // Positions of keys and queries are the same numbers; rows of `keys` count from keys.first.
  const std::int64_t seen_end =
      block.causal ? std::min(keys.count, block.first + block.count - keys.first) : keys.count;
  const Visibility visibility{block.first, keys.first + keys.count, block.causal};
  HWY_ALIGN float weights[backward_keys * block_queries];
  HWY_ALIGN float score_gradients[backward_keys * block_queries];
  for (std::int64_t first = 0; first < seen_end; first += backward_keys) {
    const std::int64_t count = std::min(backward_keys, seen_end - first);
    const std::int64_t rows = rounded_up(count, key_padding);
    // The first panel with a query that sees one of the keys.
    const std::int64_t skipped =
        block.causal ? std::max<std::int64_t>(0, keys.first + first - block.first) / panel_columns * panel_columns : 0;
    for (std::int64_t column = skipped; column < columns; column += panel_columns) {
      for (std::int64_t row = 0; row < rows; row += pair_rows) {
        const std::int64_t place = row * block_queries + column;
        visibility.all(keys.first + first + row + pair_rows, column)
            ? GradientStrip<false, biased>(block, keys, first + row, column, visibility, biases, weights + place,
                                           score_gradients + place)
            : GradientStrip<true, biased>(block, keys, first + row, column, visibility, biases, weights + place,
                                          score_gradients + place);
      }
    }
    const std::int64_t seeing = columns - skipped;
    if constexpr (biased) AddBiasGradients(biases, first, count, skipped, columns, score_gradients, gradients);
    AddProduct(rows, seeing, weights + skipped, block_queries, 1, block.gradients + skipped * value_width, value_width,
               nullptr, gradients.values + first * value_width);
    AddProduct(rows, seeing, score_gradients + skipped, block_queries, 1, block.queries + skipped * width, width,
               nullptr, gradients.keys + first * width);
    AddProduct(seeing, count, score_gradients + skipped, 1, block_queries, keys.keys + first * width, width, nullptr,
               block.query_gradients + skipped * width);
  }
}

void AddGradients(const QueryBlock& block, const PackedKeys& keys, const KeyGradients& gradients) {
  keys.biases != nullptr ? AddGradientsOf<true>(block, keys, gradients) : AddGradientsOf<false>(block, keys, gradients);
}

constexpr TrainingTiles training_tiles_table = {
    .panel_queries = panel_columns,
    .pack = Pack,
    .unpack = Unpack,
    .row_products = RowProducts,
    .attend = Attend,
    .attend_with_moments = AttendWithMoments,
    .add_gradients = AddGradients,
};

}  // namespace

}  // namespace gainlens::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

GAINLENS_VECTOR_TABLE(TrainingTiles, training_tiles)
