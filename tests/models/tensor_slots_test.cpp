#include "models/checkpoint/tensor_slots.h"

#include "core/error.h"
#include "models/checkpoint/slot_tensors.h"
#include "random_decoder.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

namespace gainlens::models {
namespace tensor_slots_test {

using gainlens::testing::every_option;
using gainlens::testing::NamedConfig;
using gainlens::testing::RandomWeights;
using gainlens::testing::small_config;
using ::testing::ElementsAre;

TensorSlot slot_of(std::vector<std::int64_t> shape, std::vector<std::vector<std::int64_t>> parts) {
  TensorSlot slot{.name = "w", .shape = std::move(shape)};
  for (auto& part : parts) slot.parts.push_back({"", std::move(part)});
  return slot;
}

std::vector<float> values(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.flatten().contiguous();
  return {flat.const_data_ptr<float>(), flat.const_data_ptr<float>() + flat.numel()};
}

at::Tensor counting(const std::vector<std::int64_t>& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return at::arange(count, at::kFloat).view(shape);
}

TEST(Unpack, SequentialRowsByHand) {
  const auto parts = unpack(slot_of({5, 1}, {{3, 1}, {1, 1}, {1, 1}}), counting({5, 1}));
  EXPECT_THAT(values(parts[0]), ElementsAre(0, 1, 2));
  EXPECT_THAT(values(parts[1]), ElementsAre(3));
  EXPECT_THAT(values(parts[2]), ElementsAre(4));
}

TEST(Unpack, RowsGroupedByKvHeadByHand) {
  // Two KV heads. Each has two rows of queries, then two rows of gates.
  TensorSlot slot = slot_of({8, 1}, {{4, 1}, {4, 1}});
  slot.order = RowOrder::grouped;
  slot.groups = 2;
  const auto parts = unpack(slot, counting({8, 1}));
  EXPECT_THAT(values(parts[0]), ElementsAre(0, 1, 4, 5));
  EXPECT_THAT(values(parts[1]), ElementsAre(2, 3, 6, 7));
}

TEST(Unpack, AlternatingTransposedStackByHand) {
  TensorSlot slot = slot_of({1, 2, 4}, {{1, 2, 2}, {1, 2, 2}});  // [expert, in, gate and up in turn]
  slot.order = RowOrder::alternating;
  slot.row_dimension = 1;
  slot.transposed = true;
  const auto parts = unpack(slot, counting({1, 2, 4}));
  EXPECT_THAT(values(parts[0]), ElementsAre(0, 4, 2, 6));
  EXPECT_THAT(values(parts[1]), ElementsAre(1, 5, 3, 7));
}

TEST(Unpack, RotaryPairsByHand) {
  // Two heads of four dimensions; stored (pair 0: both halves), (pair 1: both halves).
  TensorSlot slot = slot_of({8}, {{8}});
  slot.rotary_heads = 2;
  slot.rotary_dimensions = 4;
  EXPECT_THAT(values(unpack(slot, counting({8}))[0]), ElementsAre(0, 2, 1, 3, 4, 6, 5, 7));
}

TEST(Unpack, PartialRotaryPairsByHand) {
  // One head of six dimensions: two pairs, then two dimensions that are not rotated and keep their places.
  TensorSlot slot = slot_of({6}, {{6}});
  slot.rotary_heads = 1;
  slot.rotary_dimensions = 4;
  const at::Tensor rows = unpack(slot, counting({6}))[0];
  EXPECT_THAT(values(rows), ElementsAre(0, 2, 1, 3, 4, 5));
  EXPECT_THAT(values(pack(slot, {rows})), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST(Unpack, RotaryPairsAtTheEndByHand) {
  // Two heads of six dimensions: two that keep their places, then two pairs.
  TensorSlot slot = slot_of({12}, {{12}});
  slot.rotary_heads = 2;
  slot.rotary_dimensions = 4;
  slot.rotary_at_end = true;
  const at::Tensor rows = unpack(slot, counting({12}))[0];
  EXPECT_THAT(values(rows), ElementsAre(0, 1, 2, 4, 3, 5, 6, 7, 8, 10, 9, 11));
  EXPECT_TRUE(at::equal(pack(slot, {rows}), counting({12})));
}

TEST(TensorSlots, LatentAttentionByHand) {
  DecoderConfig config = small_config();
  config.heads = config.kv_heads = 2;
  config.head_dim = 3;
  config.latent = {.key_rank = 4, .query_rank = 5, .rotated = 2};
  config.value_head_dim = 2;
  TensorNames names;
  names.rotary_pairs = true;
  names.query_latent = "q_a", names.query_of_latent = "q_b", names.key_latent = "kv_a";
  names.key_value_of_latent = "kv_b";
  std::map<std::string, TensorSlot> slots;
  for (TensorSlot& slot : layer_slots(config, names, 0)) slots.emplace(slot.name.substr(15), std::move(slot));
  EXPECT_THAT(slots.at("q_a.weight").shape, ElementsAre(5, 16));
  EXPECT_THAT(slots.at("q_b.weight").shape, ElementsAre(6, 5));
  const auto latent = unpack(slots.at("kv_a.weight"), counting({6, 16}));
  EXPECT_THAT(values(latent[0].select(1, 0)), ElementsAre(0, 16, 32, 48));
  EXPECT_THAT(values(latent[1].select(1, 0)), ElementsAre(64, 80));  // one pair: its halves
  // For each head one row of its key, which is not rotated, then two of its value.
  const auto expanded = unpack(slots.at("kv_b.weight"), counting({6, 4}));
  EXPECT_THAT(values(expanded[0].select(1, 0)), ElementsAre(0, 12));
  EXPECT_THAT(values(expanded[1].select(1, 0)), ElementsAre(4, 8, 16, 20));
  EXPECT_THAT(slots.at("self_attn.o_proj.weight").shape, ElementsAre(16, 4));
}

TEST(Unpack, StackIsMadeWhenItsFirstExpertComes) {
  LayerWeights weights;
  const SlotTargets targets(7, weights);
  for (std::int64_t expert = 0; expert < 2; ++expert) {
    TensorSlot slot{
        .name = "w", .shape = {2}, .parts = {{"expert_up", {2}, WeightField::Kind::projection, expert, 2}}, .layer = 7};
    targets.fill(slot, unpack(slot, counting({2}) + 10 * static_cast<float>(expert)));
    EXPECT_TRUE(targets.parts(slot)[0].is_alias_of(weights.expert_up));
  }
  EXPECT_THAT(values(weights.expert_up), ElementsAre(0, 1, 10, 11));
}

TEST(SlotTargets, RefuseLayersAndFieldsThatTheWeightsDoNotHave) {
  DecoderWeights weights;
  weights.layers.resize(1);
  const SlotTargets targets(weights);
  TensorSlot slot{.name = "w", .shape = {2}, .parts = {{"mlp_up", {2}}}, .layer = 0};
  EXPECT_EQ(&targets.of(slot, slot.parts[0]), &weights.layers[0].mlp_up);
  slot.layer = 1;
  EXPECT_THROW(targets.of(slot, slot.parts[0]), InternalError);
  slot.layer = -1;
  EXPECT_THROW(targets.of(slot, slot.parts[0]), InternalError) << "mlp_up is not outside the layers";
  slot.parts[0].field = "final_norm";
  EXPECT_EQ(&targets.of(slot, slot.parts[0]), &weights.final_norm);
}

/// The names of the fields; each must be there once.
std::set<std::string_view> names_of(const std::vector<WeightField>& fields) {
  std::set<std::string_view> names;
  for (const WeightField& field : fields) EXPECT_TRUE(names.insert(field.name).second) << field.name;
  return names;
}

/// @param filter  names of the weights of a filter: a decoder has some of them
void expect_names_and_tensors(std::set<std::string_view> names, const std::map<std::string_view, at::Tensor*>& filter,
                              const TensorsByField& tensors, std::size_t bytes_of_weights) {
  for (const auto& [name, tensor] : filter) EXPECT_TRUE(names.insert(name).second) << name;
  std::set<std::string_view> found;
  std::set<const at::Tensor*> places;
  for (const auto& [name, tensor] : tensors) {
    found.insert(name);
    EXPECT_TRUE(places.insert(tensor).second) << name << " has the tensor of another field";
  }
  EXPECT_EQ(found, names);
  EXPECT_EQ(places.size() * sizeof(at::Tensor), bytes_of_weights) << "a tensor has no field";
}

TEST(WeightFields, EachHasATensorOfItsOwn) {
  DecoderWeights weights;
  LayerWeights layer;
  expect_names_and_tensors(names_of(layer_fields(small_config(), 0)), bft::tensors_by_name(layer.filter),
                           tensors_by_field(layer), sizeof(LayerWeights) - sizeof(layer.low_rank));
  expect_names_and_tensors(names_of(outer_fields(small_config())), bft::tensors_by_name(weights.precision),
                           tensors_by_field(weights), sizeof(DecoderWeights) - sizeof(weights.layers));
}

TEST(Pack, RefusesPartsThatDoNotFit) {
  const TensorSlot slot = slot_of({5, 1}, {{3, 1}, {2, 1}});
  EXPECT_THROW(pack(slot, {counting({3, 1})}), InternalError);
  EXPECT_THROW(pack(slot, {counting({2, 1}), counting({3, 1})}), InternalError);
  EXPECT_THROW(unpack(slot, counting({4, 1})), InternalError);
}

/// Names of a checkpoint that packs as many tensors as possible.
TensorNames packed_names(RowOrder order, bool transposed) {
  TensorNames names;
  names.query_key_value = "attn.qkv";
  names.query_key_value_order = order;
  names.mlp_gate_up = "mlp.gate_up";
  names.transposed = transposed;
  return names;
}

TEST(TensorSlots, PackingUndoesUnpackingInEveryLayout) {
  DecoderConfig config = small_config();
  config.qkv_bias = config.mlp_bias = true;
  TensorNames pairs;
  pairs.rotary_pairs = true;
  for (const TensorNames& names : {packed_names(RowOrder::sequential, false), packed_names(RowOrder::grouped, true),
                                   packed_names(RowOrder::alternating, false), pairs}) {
    config.rope.rotated = names.rotary_pairs ? 0.5 : 1;
    if (names.query_key_value_order == RowOrder::alternating) config.kv_heads = config.heads;  // rows of equal numbers
    DecoderWeights weights = RandomWeights(3, at::kFloat).of(config);
    const SlotTargets targets(weights);
    for (const TensorSlot& slot : tensor_slots(config, names)) {
      const at::Tensor stored = pack(slot, targets.parts(slot));
      EXPECT_EQ(stored.sizes(), at::IntArrayRef(slot.shape)) << slot.name;
      const auto parts = unpack(slot, stored), expected = targets.parts(slot);
      for (std::size_t i = 0; i < parts.size(); ++i) EXPECT_TRUE(at::equal(parts[i], expected[i])) << slot.name;
    }
  }
}

TEST(TensorSlots, GatesAndDeltaProjectionsAreGroupedByHead) {
  DecoderConfig config = small_config();  // 4 heads on 2 kv heads of 4 dimensions
  config.gate = Gate::elementwise;
  config.delta = {.layers = {true, false}, .key_heads = 2, .value_heads = 4, .key_dim = 1, .value_dim = 1, .kernel = 2};
  TensorNames names;
  names.gate_by_head = true;
  names.delta_projections = "linear_attn.in_proj_qkvz";
  names.delta_rates = "linear_attn.in_proj_ba";
  std::map<std::string, TensorSlot> slots;
  for (TensorSlot& slot : tensor_slots(config, names)) slots.emplace(slot.name, slot);
  const auto rows = [](const at::Tensor& part) { return values(part.select(1, 0)); };  // each row holds its number
  const auto numbered = [](const TensorSlot& slot) {
    return at::arange(slot.shape[0], at::kFloat).unsqueeze(1).expand(slot.shape).contiguous();
  };
  // of each query head: 4 rows of queries, 4 of its gate
  const TensorSlot& query = slots.at("model.layers.1.self_attn.q_proj.weight");
  EXPECT_THAT(rows(unpack(query, numbered(query))[1]),
              ElementsAre(4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31));
  // of each key head: 1 row of its query, 1 of its key, 2 of its values, 2 of their gates
  const TensorSlot& delta = slots.at("model.layers.0.linear_attn.in_proj_qkvz.weight");
  const auto parts = unpack(delta, numbered(delta));
  EXPECT_THAT(rows(parts[0]), ElementsAre(0, 6));
  EXPECT_THAT(rows(parts[1]), ElementsAre(1, 7));
  EXPECT_THAT(rows(parts[2]), ElementsAre(2, 3, 8, 9));
  EXPECT_THAT(rows(parts[3]), ElementsAre(4, 5, 10, 11));
  const TensorSlot& rates = slots.at("model.layers.0.linear_attn.in_proj_ba.weight");
  EXPECT_THAT(rows(unpack(rates, numbered(rates))[1]), ElementsAre(2, 3, 6, 7));
  EXPECT_FALSE(slots.contains("model.layers.0.self_attn.q_proj.weight"));
}

TEST(Unpack, ValueHeadsInTurnsByHand) {
  // One row that is no value, then the heads of 2 key heads with 3 value heads each: 0 and 3, 1 and 4, 2 and 5.
  TensorSlot slot = slot_of({7}, {{7}});
  slot.tiled = TiledHeads{.dimension = 0, .begin = 1, .key_heads = 2, .served = 3};
  const at::Tensor stored = at::tensor({9.0F, 0.0F, 3.0F, 1.0F, 4.0F, 2.0F, 5.0F});
  const at::Tensor read = unpack(slot, stored)[0];
  EXPECT_THAT(values(read), ElementsAre(9, 0, 1, 2, 3, 4, 5));
  EXPECT_THAT(values(pack(slot, {read})), ElementsAre(9, 0, 3, 1, 4, 2, 5));
  // The same along columns, with heads of two.
  TensorSlot columns = slot_of({1, 8}, {{1, 8}});
  columns.tiled = TiledHeads{.dimension = 1, .begin = 0, .key_heads = 2, .served = 2};
  EXPECT_THAT(values(unpack(columns, counting({1, 8}))[0]), ElementsAre(0, 1, 4, 5, 2, 3, 6, 7));
}

TEST(Unpack, ExponentialsByHand) {
  TensorSlot slot = slot_of({2}, {{2}});
  slot.exponential = true;
  const at::Tensor logarithms = unpack(slot, at::tensor({-1.0F, -std::exp(2.0F)}))[0];
  EXPECT_TRUE(at::allclose(logarithms, at::tensor({0.0F, 2.0F})));
  EXPECT_TRUE(at::allclose(pack(slot, {logarithms}), at::tensor({-1.0F, -std::exp(2.0F)})));
}

TEST(TensorSlots, StacksOfExpertsByOutput) {
  DecoderConfig config = small_config();
  config.experts = {.count = 2, .per_token = 1, .width = 3};
  TensorNames names;
  names.expert_gate_up = "experts.gate_up";
  names.expert_down_stack = "experts.down";
  names.expert_stacks_by_output = true;
  for (const TensorSlot& slot : tensor_slots(config, names)) {
    if (slot.name.ends_with("experts.down")) {
      EXPECT_THAT(slot.shape, ElementsAre(2, 16, 3));
    }
    if (!slot.name.ends_with("experts.gate_up")) continue;
    EXPECT_THAT(slot.shape, ElementsAre(2, 6, 16));
    const at::Tensor stored = at::arange(6, at::kFloat).view({1, 6, 1}).expand({2, 6, 16}).contiguous();
    EXPECT_THAT(values(unpack(slot, stored)[1].select(0, 1).select(1, 0)), ElementsAre(3, 4, 5));  // after the gate
  }
}

class SlotsOfEveryOption : public ::testing::TestWithParam<NamedConfig> {};

TEST_P(SlotsOfEveryOption, FillEveryWantedWeightOnce) {
  const DecoderConfig& config = GetParam().config;
  TensorNames names;  // with the tensors that most families do not have
  names.position_embedding = "position";
  names.embedding_norm = "embedding_norm";
  names.attention_post_norm = "attention_post";
  names.mlp_post_norm = "mlp_post";
  names.sink_logit = "sinks";
  names.router = "router";
  names.expert_gate = "experts.{}.gate", names.expert_up = "experts.{}.up", names.expert_down = "experts.{}.down";
  names.delta_query_key_value = "delta.qkv", names.delta_gate = "delta.z", names.delta_beta = "delta.b";
  names.delta_decay = "delta.a", names.delta_convolution = "delta.conv", names.delta_log_rate = "delta.A_log";
  names.delta_decay_bias = "delta.dt_bias", names.delta_norm = "delta.norm", names.delta_output = "delta.out";
  names.convolution_projection = "conv.in", names.convolution = "conv.conv", names.convolution_output = "conv.out";
  names.shared_gate = "shared.gate", names.shared_up = "shared.up", names.shared_down = "shared.down";
  names.shared_score = "shared_score", names.router_correction = "router.correction";
  names.rotary_pairs = config.has_latent();
  names.query_latent = "q_a", names.query_latent_norm = "q_a_norm", names.query_of_latent = "q_b";
  names.key_latent = "kv_a", names.key_latent_norm = "kv_a_norm", names.key_value_of_latent = "kv_b";
  DecoderWeights weights = RandomWeights(2, at::kFloat).of(config), filled;
  filled.layers.resize(weights.layers.size());
  const SlotTargets from(weights), to(filled);
  std::set<std::string> seen;
  for (const TensorSlot& slot : tensor_slots(config, names)) {
    EXPECT_TRUE(seen.insert(slot.name).second) << slot.name;
    to.fill(slot, unpack(slot, pack(slot, from.parts(slot))));
  }
  const auto check = [](const std::vector<WeightField>& fields, const TensorsByField& expected,
                        const TensorsByField& found) {
    for (const WeightField& field : fields) {
      ASSERT_EQ(field.wanted, found.at(field.name)->defined()) << field.name;
      if (!field.wanted) continue;
      EXPECT_TRUE(at::equal(*expected.at(field.name), *found.at(field.name))) << field.name;
    }
  };
  check(outer_fields(config), tensors_by_field(weights), tensors_by_field(filled));
  for (std::size_t layer = 0; layer < weights.layers.size(); ++layer) {
    check(layer_fields(config, static_cast<std::int64_t>(layer)), tensors_by_field(weights.layers[layer]),
          tensors_by_field(filled.layers[layer]));
  }
}

INSTANTIATE_TEST_SUITE_P(All, SlotsOfEveryOption, ::testing::ValuesIn(every_option()),
                         [](const auto& test) { return test.param.name; });

}  // namespace tensor_slots_test
}  // namespace gainlens::models
