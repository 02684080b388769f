#include "models/checkpoint/memory_needed.h"

#include "core/checked.h"
#include "core/query_scalars.h"
#include "kernels/composed/queries_per_block.h"
#include "kernels/fixed_sizes.h"
#include "models/checkpoint/model_size.h"
#include "models/decoder/block_positions.h"
#include "models/decoder/weight_fields.h"

#include <algorithm>
#include <initializer_list>
#include <set>
#include <vector>

namespace gainlens::models {
namespace {

/// A number of bytes or elements; sums and products that exceed uint64 throw.
class Count {
 public:
  Count(std::uint64_t value = 0) : value_(value) {}
  static Count of(std::int64_t value) { return checked_cast<std::uint64_t>(value, what); }
  std::uint64_t value() const { return value_; }
  friend Count operator+(Count a, Count b) { return checked_add(a.value_, b.value_, what); }
  friend Count operator*(Count a, Count b) { return checked_mul(a.value_, b.value_, what); }
  auto operator<=>(const Count&) const = default;  // NOLINT(modernize-use-nullptr): of the default

 private:
  static constexpr const char* what = "memory needed";
  std::uint64_t value_;
};

constexpr std::uint64_t process_bytes = std::uint64_t{150} << 20;  // libtorch, MKL and the heap of a sweep of nothing
constexpr std::uint64_t first_keys = kernels::first_keys, tile_rows = kernels::max_product_rows,
                        tile_columns = kernels::loss_tile_outputs;

/// How many scalars of a query a sweep computes, and how many it stores for every query: those of the list, and the
/// weight of key 0, which is computed apart.
enum class Stored { everywhere, summary, nowhere };
#define GAINLENS_COMPUTED(name, returned, label, unit, variance, window, stored, since, meaning) \
  +(Stored::stored != Stored::nowhere ? 1 : 0)
#define GAINLENS_STORED(name, returned, label, unit, variance, window, stored, since, meaning) \
  +(Stored::stored == Stored::everywhere ? 1 : 0)
constexpr std::uint64_t query_scalars = GAINLENS_QUERY_SCALARS(GAINLENS_COMPUTED);
constexpr std::uint64_t stored_scalars = 1 GAINLENS_QUERY_SCALARS(GAINLENS_STORED);
#undef GAINLENS_COMPUTED
#undef GAINLENS_STORED

/// The sizes that the terms are made of.
struct Sizes {
  Sizes(const DecoderConfig& config, const MemoryOptions& options)
      : element(bytes_of(options.dtype)),
        wide(options.dtype == ComputeDtype::float64 ? 8 : 4),
        tokens(Count::of(options.positions)),
        together(std::max(Count::of(options.positions_together), tokens)),
        width(Count::of(config.width)),
        heads(Count::of(config.heads)),
        kv_heads(Count::of(config.kv_heads)),
        head_dim(Count::of(config.head_dim)),
        value_dim(Count::of(config.value_dim())),
        queries(heads * head_dim),
        outputs(heads * value_dim),
        keys(kv_heads * head_dim),
        values(kv_heads * value_dim) {}

  bool narrow() const { return element < wide; }
  /// libtorch computes norms, rotations and gates in float64, with temporaries. Other types take one pass.
  bool by_libtorch() const { return element == Count(8); }
  /// Temporaries of a norm over `size` dimensions, for each position: the input's square and the product.
  Count norm(Count size, Norm kind) const {
    return by_libtorch() ? size * wide * (kind == Norm::layer ? 3 : 2) : Count(0);
  }

  Count element, wide, tokens, together, width, heads, kv_heads, head_dim, value_dim;
  Count queries, outputs, keys, values;  // numbers of a position, of all heads
};

/// Elements of the tensors.
struct Elements {
  std::vector<Count> outer;
  std::vector<std::vector<Count>> layers;
};

/// Elements of a tensor in memory. A packed weight [.., out, in] has whole panels of outputs.
Count elements_of(const WeightField& field, bool tied_head) {
  const bool packed = field.kind == WeightField::Kind::projection || (tied_head && field.name == "embedding");
  std::vector<std::int64_t> shape = field.shape;
  if (packed) {
    std::int64_t& outputs = shape[shape.size() - 2];
    const std::int64_t beyond = outputs % kernels::max_panel_columns;
    if (beyond != 0) outputs = checked_add(outputs, kernels::max_panel_columns - beyond, "memory needed");
  }
  return Count::of(checked_elements(shape, field.name));
}

std::vector<Count> elements_of(const std::vector<WeightField>& fields, bool tied_head) {
  std::vector<Count> elements;
  for (const WeightField& field : fields) {
    if (field.wanted) elements.push_back(elements_of(field, tied_head));
  }
  return elements;
}

Elements elements_of(const DecoderConfig& config, std::int64_t layers) {
  Elements elements{elements_of(outer_fields(config), config.tied_head), {}};
  for (std::int64_t index = 0; index < layers; ++index)
    elements.layers.push_back(elements_of(layer_fields(config, index), config.tied_head));
  return elements;
}

Count sum(const std::vector<Count>& elements) {
  Count total;
  for (const Count& count : elements) total = total + count;
  return total;
}

void add_weights(const DecoderConfig& config, const MemoryOptions& options, Count element, MemoryNeeded& needed) {
  const Elements elements = elements_of(config, options.stop_at_layer.value_or(config.layers));
  Count held = sum(elements.outer), largest_layer;
  for (const auto& layer : elements.layers) {
    if (!options.stream_weights) held = held + sum(layer);
    largest_layer = std::max(largest_layer, sum(layer));
  }
  if (options.stream_weights) held = held + largest_layer;
  // The pages of a tensor's file are given back while it is read.
  needed.weights = (held * element).value();
}

/// How many KV heads the streaming kernel packs at a time: enough for 32 blocks of queries for each of its workers.
Count packed_heads(const Sizes& sizes, const MemoryOptions& options) {
  const Count group =
      std::max<std::uint64_t>(1, sizes.heads.value() / std::max<std::uint64_t>(1, sizes.kv_heads.value()));
  const std::uint64_t rows = sizes.head_dim + sizes.value_dim * 4 > Count(640) ? 60 : 120;
  const std::uint64_t step = std::max<std::uint64_t>(1, rows / group.value());
  const std::uint64_t blocks = std::max<std::uint64_t>(1, (sizes.tokens.value() + step - 1) / step);
  const auto workers = static_cast<std::uint64_t>(std::max<std::int64_t>(2, options.threads));
  return std::min<Count>((32 * workers + blocks - 1) / blocks, sizes.kv_heads);
}

/// Packed keys, values and squares of values. Each kind of layer has its own; the kernel keeps them for the next layer.
Count packed_bytes(const DecoderConfig& config, const Sizes& sizes, const MemoryOptions& options) {
  std::set<std::int64_t> windows;
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    if (config.attends(layer)) windows.insert(config.window[static_cast<std::size_t>(layer)]);
  }
  const bool each_layer = config.scale_by_layer || config.sink_logits;
  const Count kinds = each_layer ? Count::of(config.attention_layers(config.layers)) : Count(windows.size());
  return kinds * packed_heads(sizes, options) * sizes.together * (sizes.head_dim + sizes.value_dim * 2) * sizes.wide;
}

Count kept_queries(const DecoderConfig& config, const Sizes& sizes, const MemoryOptions& options) {
  const Count layers =
      Count::of(options.measured_layers > 0 ? options.measured_layers : config.attention_layers(config.layers));
  const Count numbers = stored_scalars + first_keys + (config.gate != Gate::none ? 1 : 0);
  // The dataset with most numbers is read back from its file and compared.
  return layers * sizes.heads * (sizes.together * numbers + sizes.tokens * first_keys) * sizeof(double);
}

Count sequence_bytes(const DecoderConfig& config, const Sizes& sizes, const MemoryOptions& options) {
  Count bytes = sizes.together * sizes.width * sizes.element;
  const std::uint64_t tables = config.positions != Positions::rotary ? 0 : config.window_rope ? 2 : 1;
  bytes = bytes + sizes.together * sizes.head_dim * sizes.element * tables;
  if (config.positions == Positions::alibi) bytes = bytes + sizes.together * sizes.heads * sizes.wide;
  if (options.statistics && !options.composed) bytes = bytes + packed_bytes(config, sizes, options);
  if (options.statistics && options.per_query) bytes = bytes + kept_queries(config, sizes, options);
  return bytes;
}

Count attention_bytes(const DecoderConfig& config, const Sizes& sizes, const MemoryOptions& options) {
  const auto& [element, wide, tokens, together, width, heads, kv_heads, head_dim, value_dim, queries, outputs, keys,
               values] = sizes;
  // Latent attention: the short rows, and the keys before they get their rotated part.
  const LatentAttention& latent = config.latent;
  const Count expanded = Count::of(latent.query_rank) + Count::of(latent.key_rank) * 2 + Count::of(latent.rotated) * 2;
  const Count input = (width + expanded) * element, projected = (queries + keys + values) * element;
  const Count output = outputs * element;
  Count peak = sizes.norm(width, config.norm);
  const auto consider = [&peak](Count bytes) { peak = std::max(peak, bytes); };
  // Before a tensor is rotated it has a normed copy.
  const std::uint64_t rotation = config.positions != Positions::rotary ? 0 : sizes.by_libtorch() ? 3 : 1;
  const std::uint64_t normed = config.qk_norm == QkNorm::none ? 0 : 1;
  for (const auto& [done, size] : {std::pair{Count(0), queries}, std::pair{queries, keys}}) {
    consider(input + projected + (done + size * (rotation + normed)) * element);
    if (normed > 0) consider(input + projected + done * element + sizes.norm(size, Norm::rms));
  }
  consider(input + projected + output * 2);  // the outputs are copied into one tensor of the batch
  consider(input * 2 + output * 2 + (config.gate == Gate::elementwise ? output * 2 : Count(0)));
  if (options.statistics) {
    const Count fields = query_scalars + first_keys + (config.sink_logits ? 2 : 0);
    const Count statistics = heads * wide * fields;
    const Count packed = packed_heads(sizes, options);
    const Count converted =  // of the heads that are packed at a time: q, k, v and output in float32
        sizes.narrow() ? packed * (heads.value() / std::max<std::uint64_t>(1, kv_heads.value()) + 1) *
                             (head_dim + value_dim) * wide
                       : Count(0);
    const std::uint64_t copies = wide == Count(8) ? 1 : 2;  // to double, then with keys before queries
    const Count by_key = heads * first_keys * sizeof(double) * copies;
    const Count value_moments = values * sizeof(double) + heads * 32;
    const Count held = input + projected + output + statistics;
    consider(held + (options.composed ? queries * wide + keys * wide + values * 2 * sizeof(double) : converted));
    consider(held + std::max(by_key, value_moments));
  }
  // S, lambda_obs, K, lambda and what they are computed from, beside what attention holds anyway.
  if (config.filter) peak = peak + width * wide * 7;
  Count block;
  if (options.statistics && options.composed && tokens > Count(0)) {
    const auto rows = static_cast<std::uint64_t>(kernels::composed_queries_per_block(config.heads, options.positions));
    block = heads * rows * tokens * (2 * wide.value() + sizeof(double));
  }
  return tokens * peak + block;
}

/// A layer of the gated delta rule: its input and result, and the heads of one block of positions.
Count delta_bytes(const DecoderConfig& config, const Sizes& sizes) {
  if (config.delta.layers.empty()) return 0;
  const DeltaLayers& of = config.delta;
  const Count keys = Count::of(of.keys()), values = Count::of(of.values()), heads = Count::of(of.value_heads);
  const Count key_dim = Count::of(of.key_dim), value_dim = Count::of(of.value_dim);
  const Count rows = std::min(sizes.tokens, Count::of(block_positions));
  const Count chunk = Count::of(kernels::delta_chunk_positions);
  const Count streams = sizes.tokens * sizes.width * sizes.element * 2;
  // Queries and keys of every value head, pairs of positions, corrections, and the state twice.
  const Count chunk_bytes =
      heads * (chunk * (key_dim * 4 + value_dim * 5 + chunk * 5) + key_dim * value_dim * 3) * sizes.wide;
  // In the rule: queries and keys before and after they are normalised, values and the result.
  const Count rule = rows * (keys * 4 + values * 2) * sizes.wide + chunk_bytes;
  // After it: queries, keys and values still; the result, its norm, the gate before and after SiLU, their product.
  const Count gating = rows * (keys * 2 + values * 6) * sizes.wide;
  const Count block = rows * sizes.width * 2 * sizes.wide + std::max(rule, gating);
  return std::max(sizes.tokens * sizes.norm(sizes.width, config.norm), streams + block);
}

/// A layer of short convolutions: its input and result, twice while blocks are joined, and one block of positions.
Count convolution_bytes(const DecoderConfig& config, const Sizes& sizes) {
  if (config.convolution.layers.empty()) return 0;
  const Count streams = sizes.tokens * sizes.width * sizes.element * 3;
  // The input, its three projections, the products before and after the convolution, its sum and one term of it.
  const Count rows = std::min(sizes.tokens, Count::of(block_positions));
  const Count block = rows * sizes.width * (sizes.element * 7 + sizes.wide * 2);
  return std::max(sizes.tokens * sizes.norm(sizes.width, config.norm), streams + block);
}

Count mlp_bytes(const DecoderConfig& config, const Sizes& sizes, const MemoryOptions& options) {
  const Count stream = sizes.width * sizes.element;
  const bool experts = config.experts.count > 0;
  // Beside the stream: attention's input, the sum with its result, the MLP's input, the new stream. The result of the
  // MLP is a stream of its own if it is not added where it is made.
  std::uint64_t streams = sizes.narrow() || config.post_norm || experts ? 5 : 4;
  if (sizes.by_libtorch()) streams = 6;
  const Count before = stream * (config.parallel_residual ? 2 : 3);
  const Count each = std::max(before + sizes.norm(sizes.width, config.norm), stream * streams);
  const Count values = options.statistics ? sizes.values * sizes.element : Count(0);  // the last layer's, for its norms
  // lambda' and lambda'', the stretch, and between them a sum and its inverse.
  const Count filter = config.filter ? sizes.tokens * sizes.width * sizes.wide * 5 : Count(0);
  Count neurons;
  if (experts) {
    const Count count = Count::of(config.experts.count), chosen = Count::of(config.experts.per_token);
    const Count busiest = std::min(sizes.tokens, Count(3 * sizes.tokens.value() * chosen.value() /
                                                       (2 * std::max<std::uint64_t>(1, count.value()))));
    neurons =
        busiest * (Count::of(config.experts.width) * (sizes.by_libtorch() ? 4 : 1) + sizes.width * 3) * sizes.element +
        sizes.tokens * count * (sizes.element * 2 + 8);
    if (const Count shared = Count::of(config.experts.shared_width); shared > Count(0)) {
      // Beside the sum of the chosen experts: its output, and the product with its score or the sum of both.
      const Count rows = sizes.by_libtorch() ? sizes.tokens : std::min(sizes.tokens, Count::of(block_positions));
      const Count own = sizes.tokens * stream * 2 + rows * shared * (sizes.by_libtorch() ? 4 : 1) * sizes.element;
      neurons = std::max(neurons, own);
    }
  } else {
    const Count rows = std::min(sizes.tokens, Count::of(block_positions));
    neurons = rows *
              (Count::of(config.mlp_width) * (!sizes.by_libtorch()  ? 1
                                              : config.clipped_gate ? 8
                                              : config.gated_mlp    ? 4
                                                                    : 2) +
               sizes.width) *
              sizes.element;
  }
  return filter + sizes.tokens * values +
         std::max(sizes.tokens * each, sizes.tokens * stream * (streams - 1) + neurons);
}

Count likelihood_bytes(const DecoderConfig& config, const Sizes& sizes, const MemoryOptions& options) {
  const Count vocabulary = std::max<std::uint64_t>(1, Count::of(config.vocabulary).value());
  const Count streams = sizes.together * sizes.width * sizes.element +
                        sizes.tokens * (sizes.width * sizes.element + sizes.norm(sizes.width, config.norm));
  if (sizes.by_libtorch()) {
    const Count rows =
        std::min(sizes.tokens, Count(std::max<std::uint64_t>(1, kernels::logits_per_block / vocabulary.value())));
    return std::max(rows * vocabulary * sizes.element * (config.logit_soft_cap > 0 ? 4 : 2), streams);
  }
  const auto workers = static_cast<std::uint64_t>(std::max<std::int64_t>(2, options.threads));
  constexpr std::uint64_t segment = kernels::loss_segment_outputs;
  const Count segments = (vocabulary.value() + segment - 1) / segment;
  return streams + segments * sizes.tokens * std::uint64_t{kernels::loss_part_bytes} +
         Count(workers) * tile_rows * sizes.wide * (sizes.width + Count(2 * tile_columns));
}

}  // namespace

std::uint64_t MemoryNeeded::total() const {
  const Count running = Count(sequences) + std::max({attention, mlp, likelihood});
  return (Count(process) + weights + running).value();
}

MemoryNeeded memory_needed(const DecoderConfig& config, const MemoryOptions& options) {
  const Sizes sizes(config, options);
  MemoryNeeded needed;
  needed.process = process_bytes;
  add_weights(config, options, sizes.element, needed);
  needed.sequences = sequence_bytes(config, sizes, options).value();
  needed.attention =
      std::max({attention_bytes(config, sizes, options), delta_bytes(config, sizes), convolution_bytes(config, sizes)})
          .value();
  needed.mlp = mlp_bytes(config, sizes, options).value();
  const bool whole = options.stop_at_layer.value_or(config.layers) == config.layers;
  if (options.likelihood && whole) needed.likelihood = likelihood_bytes(config, sizes, options).value();
  needed.total();  // throws if the sum exceeds uint64
  return needed;
}

}  // namespace gainlens::models
