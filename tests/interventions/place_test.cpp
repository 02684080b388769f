#include "interventions/place.h"

#include "formats/tensor_file.h"
#include "interventions/arm.h"
#include "models/decoder/decoder_sites.h"
#include "models/random_decoder.h"
#include "support/refusal.h"
#include "support/shared_data.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace gainlens::interventions {
namespace place_test {

using gainlens::testing::refusal_of;
using gainlens::testing::small_config;
using ::testing::HasSubstr;

constexpr std::int64_t length = 10;

Place placed(const std::string& text, const models::DecoderConfig& config = small_config()) {
  return place_of(parse_intervention(text).writes.front(), config, models::decoder_sites(config), length);
}

std::string refusal(const std::string& text, const models::DecoderConfig& config = small_config()) {
  return refusal_of([&] { placed(text, config); });
}

TEST(Place, KnowsHeadsAndLayers) {
  const Place query = placed("blocks.1.attn.hook_z[head=3]=zero");
  EXPECT_EQ(query.layer, 1);
  EXPECT_EQ(query.heads, 4);
  EXPECT_FALSE(query.kv_heads);
  const Place value = placed("blocks.0.attn.hook_v[head=1]=zero");
  EXPECT_EQ(value.heads, 2);
  EXPECT_TRUE(value.kv_heads);
  EXPECT_EQ(placed("hook_embed=zero").layer, -1);
  EXPECT_EQ(placed("ln_final.hook_normalized=zero").layer, 2);
}

TEST(Place, APartIsAViewOfHeadAndPosition) {
  const Write write = parse_intervention("blocks.1.attn.hook_z[head=3][position=7]=zero").writes.front();
  const at::Tensor site = at::arange(1 * length * 4 * 4).view({1, length, 4, 4});
  EXPECT_TRUE(at::equal(placed(write.text()).part(site, write), site.slice(1, 7, 8).slice(2, 3, 4)));
  const Write weights = parse_intervention("blocks.1.attn.hook_pattern[head=2][position=7]=zero").writes.front();
  const at::Tensor pattern = at::arange(4 * length * length).view({1, 4, length, length});
  EXPECT_TRUE(at::equal(placed(weights.text()).part(pattern, weights), pattern.slice(1, 2, 3).slice(2, 7, 8)));
}

TEST(Place, APartMayBeARangeOfPositionsAndKeys) {
  const Write write = parse_intervention("blocks.1.hook_resid_pre[position=4:7]=zero").writes.front();
  const at::Tensor site = at::arange(length * 16).view({1, length, 16});
  EXPECT_TRUE(at::equal(placed(write.text()).part(site, write), site.slice(1, 4, 7)));
  const std::string text = "blocks.1.attn.hook_pattern[head=2][position=5:8][key=1:3]=";
  const at::Tensor pattern = at::arange(4 * length * length).view({1, 4, length, length});
  const at::Tensor rows = pattern.slice(1, 2, 3).slice(2, 5, 8);
  const Write zero = parse_intervention(text + "zero").writes.front(),
              knockout = parse_intervention(text + "knockout").writes.front();
  EXPECT_TRUE(at::equal(placed(zero.text()).part(pattern, zero), rows.slice(3, 1, 3)));
  EXPECT_TRUE(at::equal(placed(knockout.text()).part(pattern, knockout), rows));
}

/// A softmax without the keys, of scores that are made up here.
TEST(Place, AKnockoutIsASoftmaxWithoutTheKeys) {
  for (const bool sink : {false, true}) {
    models::DecoderConfig config = small_config();
    config.sink_logits = sink;
    const Arm arm = place_arm(parse_intervention("blocks.1.attn.hook_pattern[position=1:10][key=0]=knockout"), config,
                              models::decoder_sites(config), length, at::kDouble);
    at::Tensor scores = 5 * at::randn({1, 4, length, length + 1}, at::kDouble);  // the last one is that of the sink
    scores.slice(3, 0, length).masked_fill_(at::ones({length, length}, at::kBool).triu(1), -HUGE_VAL);
    if (!sink) scores.select(3, length).fill_(-HUGE_VAL);
    const at::Tensor native = scores.softmax(-1).slice(3, 0, length).slice(2, 1);
    scores.select(3, 0).fill_(-HUGE_VAL);
    const at::Tensor expected = scores.softmax(-1).slice(3, 0, length).slice(2, 1);
    const at::Tensor found = new_values(arm.writes.front(), native, {}, {});
    // Where key 0 has nearly all of the weight, the rest has few digits.
    EXPECT_LT((found - expected).abs().max().item<double>(), 1e-10) << sink;
  }
  const auto sites = models::decoder_sites(small_config());
  const Arm all = place_arm(parse_intervention("blocks.1.attn.hook_pattern[key=0]=knockout"), small_config(), sites,
                            length, at::kDouble);
  const at::Tensor weights = at::ones({1, 4, length, length}, at::kDouble).tril();
  EXPECT_THAT(refusal_of([&] { new_values(all.writes.front(), weights / weights.sum(-1, true), {}, {}); }),
              HasSubstr("query 0 sees no other key; leave it out with [position=START:STOP]"));
}

TEST(Place, WrongOnesAreRefused) {
  EXPECT_THAT(refusal("blocks.1.attn.hook_zz=zero"), HasSubstr("did you mean 'blocks.1.attn.hook_z'?"));
  EXPECT_THAT(refusal("blocks.7.attn.hook_z=zero"), HasSubstr("layer 7 is out of range; the model has layers 0 to 1"));
  EXPECT_THAT(refusal("blocks.1.attn.hook_z[head=4]=zero"),
              HasSubstr("query head 4 is out of range; there are 4 query heads, from 0 to 3"));
  EXPECT_THAT(refusal("blocks.1.attn.hook_k[head=2]=zero"),
              HasSubstr("KV head 2 is out of range; there are 2 KV heads, from 0 to 1"));
  EXPECT_THAT(refusal("hook_embed[head=0]=zero"), HasSubstr("hook_embed has no heads"));
  EXPECT_THAT(refusal("hook_embed[position=10]=zero"),
              HasSubstr("position 10 is out of range; there are 10 positions, from 0 to 9"));
  EXPECT_THAT(refusal("hook_logits=zero"), HasSubstr("can be observed, not replaced"));
  EXPECT_THAT(refusal("blocks.1.attn.hook_gate=zero"), HasSubstr("the model has no gates"));
  EXPECT_THAT(refusal("blocks.1.attn.hook_pattern=mean"), HasSubstr("have no mean over positions"));
  EXPECT_THAT(refusal("blocks.1.attn.hook_v[key=0]=zero"), HasSubstr("only attn.hook_pattern has keys"));
  EXPECT_THAT(refusal("blocks.1.attn.hook_pattern[key=10]=zero"),
              HasSubstr("key 10 is out of range; there are 10 keys"));
  EXPECT_THAT(refusal("blocks.1.attn.hook_pattern=knockout"), HasSubstr("a knockout needs the keys"));
  EXPECT_THAT(refusal("hook_embed[position=8:11]=zero"), HasSubstr("position 10 is out of range"));
  EXPECT_THAT(refusal("blocks.1.attn.hook_pattern=resample"), HasSubstr("no counterpart in another document"));
  models::DecoderConfig linear = small_config();
  linear.delta = {.layers = {true, false}, .key_heads = 2, .value_heads = 4, .key_dim = 6, .value_dim = 5, .kernel = 3};
  EXPECT_THAT(refusal("blocks.0.attn.hook_z[head=0]=zero", linear), HasSubstr("layer 0 has linear attention"));
  EXPECT_EQ(refusal("blocks.0.hook_attn_out=zero", linear), "accepted");
}

/// A file with one tensor under the name of a site.
std::string file_with(const std::filesystem::path& folder, const at::Tensor& values) {
  const auto path = folder / "patch.safetensors";
  formats::write_tensors(path, {{"blocks.1.attn.hook_z",
                                 formats::DType::f32,
                                 values.sizes().vec(),
                                 {static_cast<const std::byte*>(values.const_data_ptr()), values.nbytes()}}});
  return path;
}

TEST(ArmWithAFile, TakesTheWholeSiteAndWritesAPartOfIt) {
  const gainlens::testing::TemporaryFolder folder;
  const models::DecoderConfig config = small_config();
  const auto sites = models::decoder_sites(config);
  const auto arm_of = [&](const std::string& site, const at::Tensor& values) {
    const std::string text = site + "=" + file_with(folder.path(), values);
    return place_arm(parse_intervention(text), config, sites, length, at::kFloat);
  };
  const at::Tensor values = at::randn({1, length, 4, 4});
  const Arm arm = arm_of("blocks.1.attn.hook_z[head=3][position=2]", values);
  const PlacedWrite& write = arm.writes.front();
  const at::Tensor part = at::zeros({1, 1, 1, 4});
  EXPECT_TRUE(at::equal(new_values(write, part, {}, {}), values.slice(1, 2, 3).slice(2, 3, 4)));
  EXPECT_EQ(arm.first_position(), 2);
  EXPECT_EQ(arm.start(), 1);

  EXPECT_THAT(refusal_of([&] {
                arm_of("blocks.1.attn.hook_z", at::randn({1, length, 4, 5}));
              }),
              HasSubstr("has shape [1, 10, 4, 5]; this intervention needs [1, 10, 4, 4]"));
  EXPECT_THAT(refusal_of([&] { arm_of("blocks.0.attn.hook_z", values); }), HasSubstr("blocks.1.attn.hook_z"));
  at::Tensor broken = values.clone();
  broken[0][0][0][0] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THAT(refusal_of([&] { arm_of("blocks.1.attn.hook_z", broken); }), HasSubstr("NaN"));
}

}  // namespace place_test
}  // namespace gainlens::interventions
