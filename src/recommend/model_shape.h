#pragma once

#include "core/check.h"
#include "core/knobs.h"
#include "recommend/recommender_files.h"

#include <cmath>
#include <string>
#include <vector>

// What the configurations of several backbones have in common. Members have the same names in all of them.

namespace gainlens::recommend {

/// What the embedding of an item is multiplied by before the position's is added.
enum class EmbeddingFactor { one, sqrt_width };

#define GAINLENS_MEMBER(name) ([](Owner & config) -> auto& { return config.name; })

template <typename Owner>
std::vector<Knob<Owner>> size_knobs() {
  return {
      whole_knob<Owner>("width", "of the residual stream", GAINLENS_MEMBER(width), 1),
      whole_knob<Owner>("heads", "attention heads; must divide the width", GAINLENS_MEMBER(heads), 1),
      whole_knob<Owner>("layers", "layers", GAINLENS_MEMBER(layers), 1),
      whole_knob<Owner>("inner_width", "neurons of the MLP", GAINLENS_MEMBER(inner_width), 1),
      whole_knob<Owner>("positions", "items of a history that the model sees, the last ones",
                        GAINLENS_MEMBER(positions), 1),
  };
}

template <typename Owner>
std::vector<Knob<Owner>> embedding_knobs() {
  return {
      choice_knob<Owner>("embedding_factor",
                         "an item's embedding is taken as it is (one) or times the root of the width",
                         {"one", "sqrt_width"}, GAINLENS_MEMBER(embedding_factor))
          .absent_is("one"),
      real_knob<Owner>("embedding_deviation", "of the embeddings before training", GAINLENS_MEMBER(embedding_deviation),
                       {0, 1e6, false})
          .absent_is(0.02),
      flag_knob<Owner>("embedding_norm", "a norm after the embeddings", GAINLENS_MEMBER(embedding_norm)),
      real_knob<Owner>("norm_epsilon", "added to the variance in norms", GAINLENS_MEMBER(norm_epsilon), {1e-15, 1}),
      choice_knob<Owner>("alignment", "the last item (end) or the first (start) has a fixed position", {"end", "start"},
                         GAINLENS_MEMBER(alignment)),
  };
}

#undef GAINLENS_MEMBER

/// @throws InvalidArgument  not in 1 to `most`
inline void check_count(const std::string& where, const char* key, std::int64_t value, std::int64_t most) {
  CHECK(value >= 1 && value <= most, "{}: '{}' is {}; must be 1 to {}", where, key, value, most);
}

/// @throws InvalidArgument  a number out of its range, heads that do not divide the width
template <typename Config>
void check_shape(const Config& config, const std::string& where) {
  check_count(where, "items", config.items, max_items);
  check_count(where, "width", config.width, 16384);
  check_count(where, "heads", config.heads, 1024);
  check_count(where, "layers", config.layers, 1024);
  check_count(where, "inner_width", config.inner_width, 262144);
  check_count(where, "positions", config.positions, 1 << 20);
  CHECK(config.width % config.heads == 0, "{}: 'width' is {} and 'heads' is {}; heads must divide the width", where,
        config.width, config.heads);
  CHECK(std::isfinite(config.norm_epsilon) && config.norm_epsilon > 0, "{}: 'norm_epsilon' is {}; must be positive",
        where, config.norm_epsilon);
}

}  // namespace gainlens::recommend
