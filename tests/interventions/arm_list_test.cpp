#include "interventions/arm_list.h"

#include "models/decoder/decoder_sites.h"
#include "models/random_decoder.h"
#include "support/refusal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace gainlens::interventions {
namespace arm_list_test {

using gainlens::testing::small_config;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::vector<std::string> texts(const EveryUnit& every, const models::DecoderConfig& config = small_config()) {
  std::vector<std::string> all;
  for (const Intervention& one : interventions_on(every, config)) all.push_back(one.text());
  return all;
}

models::DecoderConfig with_linear_layers(bool both) {
  models::DecoderConfig config = small_config();
  config.delta = {.layers = {true, both}, .key_heads = 2, .value_heads = 4, .key_dim = 6, .value_dim = 5, .kernel = 3};
  return config;
}

TEST(EveryUnit, HasOneInterventionForEachUnitAndMode) {
  EXPECT_THAT(texts({.heads = true}), SizeIs(8));
  EXPECT_THAT(texts({.kv_heads = true, .modes = {Mode::zero, Mode::resample}}),
              ElementsAre("blocks.0.attn.hook_v[head=0]=zero", "blocks.0.attn.hook_v[head=0]=resample",
                          "blocks.0.attn.hook_v[head=1]=zero", "blocks.0.attn.hook_v[head=1]=resample",
                          "blocks.1.attn.hook_v[head=0]=zero", "blocks.1.attn.hook_v[head=0]=resample",
                          "blocks.1.attn.hook_v[head=1]=zero", "blocks.1.attn.hook_v[head=1]=resample"));
  EXPECT_THAT(texts({.layers = true, .modes = {Mode::mean}}),
              ElementsAre("blocks.0.hook_attn_out=mean", "blocks.0.hook_mlp_out=mean", "blocks.1.hook_attn_out=mean",
                          "blocks.1.hook_mlp_out=mean"));
  EXPECT_THAT(texts({}), SizeIs(0));
}

TEST(ReadHead, GivesLayerAndHeadWhateverTheirSign) {
  const auto found = read_head("17.-2");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->layer, 17);
  EXPECT_EQ(found->head, -2);
  for (const char* wrong : {"", "17", "17.", ".2", " 17.2", "17.2 ", "17.2.1", "17,2", "99999999999999999999.1"})
    EXPECT_FALSE(read_head(wrong)) << wrong;
}

TEST(EveryUnit, TakesSomeHeads) {
  EXPECT_THAT(texts({.some_heads = parse_heads("1.3,0.2", "--heads"), .modes = {Mode::zero, Mode::mean}}),
              ElementsAre("blocks.1.attn.hook_z[head=3]=zero", "blocks.1.attn.hook_z[head=3]=mean",
                          "blocks.0.attn.hook_z[head=2]=zero", "blocks.0.attn.hook_z[head=2]=mean"));
  for (const char* wrong : {"", "5", "5.", ".5", "5.1,", "5.1 ,6.1", "-1.2", "1.-2", "5.1.2", "a.b"})
    EXPECT_THAT(gainlens::testing::refusal_of([&] { parse_heads(wrong, "--heads"); }), HasSubstr("is no head; give"))
        << wrong;
  EXPECT_THAT(gainlens::testing::refusal_of([] {
                texts({.some_heads = {{0, 1}}, .heads = true});
              }),
              HasSubstr("--each-head has these too"));
}

TEST(EveryUnit, LeavesOutLayersOfLinearAttention) {
  EXPECT_THAT(texts({.heads = true}, with_linear_layers(false)),
              ElementsAre("blocks.1.attn.hook_z[head=0]=zero", "blocks.1.attn.hook_z[head=1]=zero",
                          "blocks.1.attn.hook_z[head=2]=zero", "blocks.1.attn.hook_z[head=3]=zero"));
  EXPECT_THAT(gainlens::testing::refusal_of([] { texts({.heads = true}, with_linear_layers(true)); }),
              HasSubstr("every layer has linear attention"));
}

Control control(const std::string& text, std::uint64_t seed) {
  const models::DecoderConfig config = small_config();
  return control_of(parse_intervention(text), config, models::decoder_sites(config), 10, seed);
}

TEST(Control, HasAsManyOtherHeads) {
  std::set<std::string> found;
  for (std::uint64_t seed = 0; seed < 40; ++seed)
    found.insert(control("blocks.0.attn.hook_z[head=1][position=3]=0.5", seed).intervention->text());
  EXPECT_THAT(
      found, ElementsAre("blocks.0.attn.hook_z[head=0][position=3]=0.5", "blocks.0.attn.hook_z[head=2][position=3]=0.5",
                         "blocks.0.attn.hook_z[head=3][position=3]=0.5"));
  found.clear();
  for (std::uint64_t seed = 0; seed < 40; ++seed)
    found.insert(
        control("blocks.0.attn.hook_z[head=0]=zero + blocks.0.attn.hook_z[head=3]=zero", seed).intervention->text());
  EXPECT_THAT(found, ElementsAre("blocks.0.attn.hook_z[head=1]=zero + blocks.0.attn.hook_z[head=2]=zero",
                                 "blocks.0.attn.hook_z[head=2]=zero + blocks.0.attn.hook_z[head=1]=zero"));
}

TEST(Control, IsThatOfTheHeadsInEveryModeAndOrder) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const auto head_of = [&](const std::string& rest) {
      return control("blocks.0.attn.hook_z[head=1]" + rest, seed).intervention->writes.front().head;
    };
    EXPECT_EQ(head_of("=zero"), head_of("=mean"));
    EXPECT_EQ(head_of("=zero"), head_of("[position=2]=0.5"));
    const std::string a = "blocks.0.attn.hook_z[head=0]=zero", b = "blocks.0.attn.hook_z[head=3]=zero";
    const auto one = control(a + " + " + b, seed).intervention->writes,
               other = control(b + " + " + a, seed).intervention->writes;
    EXPECT_EQ(one[0].head, other[1].head);
    EXPECT_EQ(one[1].head, other[0].head);
  }
}

TEST(Control, IsMissingWithAReason) {
  EXPECT_EQ(control("blocks.0.hook_mlp_out=zero", 0).reason, "it is not of single heads");
  EXPECT_EQ(control("blocks.0.attn.hook_v[head=0]=zero + blocks.0.attn.hook_v[head=1]=zero", 0).reason,
            "the layer has too few other heads");
}

}  // namespace arm_list_test
}  // namespace gainlens::interventions
