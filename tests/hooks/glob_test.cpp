#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/error.h"
#include "hooks/site.h"

namespace gainlens::hooks {
namespace glob_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

bool matches(const std::string& pattern, const std::string& name) {
  return Glob(pattern).matches(Site{name});
}

std::vector<SiteShape> three_sites() {
  return {{Site{"hook_embed"}, {"batch", "position", "8"}},
          {Site{"blocks.0.attn.hook_q"}, {"batch", "position", "2", "4"}},
          {Site{"blocks.0.attn.hook_k"}, {"batch", "position", "1", "4"}}};
}

std::vector<std::string> names(const std::vector<SiteShape>& sites) {
  std::vector<std::string> result;
  for (const SiteShape& shape : sites) result.push_back(shape.site.name);
  return result;
}

TEST(Site, BlockSiteCarriesTheLayer) {
  EXPECT_EQ(block_site(12, "attn.hook_q").name, "blocks.12.attn.hook_q");
}

TEST(Glob, PlainNameMatchesItselfAlone) {
  EXPECT_TRUE(matches("hook_embed", "hook_embed"));
  EXPECT_FALSE(matches("hook_embed", "hook_embedding"));
  EXPECT_FALSE(matches("hook_embed", "blocks.0.hook_embed"));
}

TEST(Glob, StarCrossesDots) {
  EXPECT_TRUE(matches("*", "blocks.0.attn.hook_q"));
  EXPECT_TRUE(matches("blocks.*hook_q", "blocks.0.attn.hook_q"));
  EXPECT_FALSE(matches("blocks.*.hook_q", "blocks.0.attn.hook_k"));
}

TEST(Glob, QuestionMarkIsOneCharacter) {
  EXPECT_TRUE(matches("blocks.?.hook_resid_pre", "blocks.7.hook_resid_pre"));
  EXPECT_FALSE(matches("blocks.?.hook_resid_pre", "blocks.17.hook_resid_pre"));
}

TEST(Glob, BracketsAreSetsAndRanges) {
  EXPECT_TRUE(matches("blocks.[0-3].attn.hook_[qk]", "blocks.2.attn.hook_k"));
  EXPECT_FALSE(matches("blocks.[0-3].attn.hook_[qk]", "blocks.4.attn.hook_k"));
  EXPECT_FALSE(matches("blocks.[0-3].attn.hook_[qk]", "blocks.2.attn.hook_v"));
}

TEST(Glob, BracesAreAlternatives) {
  EXPECT_TRUE(matches("*.hook_{q,rot_q}", "blocks.0.attn.hook_q"));
  EXPECT_TRUE(matches("*.hook_{q,rot_q}", "blocks.0.attn.hook_rot_q"));
  EXPECT_FALSE(matches("*.hook_{q,rot_q}", "blocks.0.attn.hook_rot_k"));
}

TEST(Glob, BracesMultiplyAndNest) {
  const std::string pattern = "blocks.{1,2}.{hook_resid_{pre,post},attn.hook_z}";
  for (const char* name : {"blocks.1.hook_resid_pre", "blocks.2.hook_resid_post", "blocks.2.attn.hook_z"})
    EXPECT_TRUE(matches(pattern, name)) << name;
  for (const char* name : {"blocks.3.hook_resid_pre", "blocks.1.hook_resid_mid", "blocks.1.hook_z"})
    EXPECT_FALSE(matches(pattern, name)) << name;
}

TEST(Glob, EmptyAlternativeIsAllowed) {
  EXPECT_TRUE(matches("mlp.hook_pre{,_linear}", "mlp.hook_pre"));
  EXPECT_TRUE(matches("mlp.hook_pre{,_linear}", "mlp.hook_pre_linear"));
}

TEST(Glob, UnbalancedBracesAreNamed) {
  EXPECT_THAT([] { Glob("hook_{q,k"); },
              ThrowsMessage<InvalidArgument>(HasSubstr("'{' at character 6 is never closed")));
  EXPECT_THAT([] { Glob("hook_q}"); }, ThrowsMessage<InvalidArgument>(HasSubstr("a '}' without its '{'")));
  EXPECT_THAT([] { Glob("}a{"); }, ThrowsMessage<InvalidArgument>(HasSubstr("a '}' without its '{'")));
  EXPECT_THAT([] { Glob(""); }, ThrowsMessage<InvalidArgument>(HasSubstr("it is empty")));
}

TEST(Glob, OpenBracketsAreNamed) {
  EXPECT_THAT([] { Glob("["); },
              ThrowsMessage<InvalidArgument>("hook pattern '[': the '[' at character 1 is never closed; write a set of "
                                             "characters as [ab]"));
  for (const char* pattern : {"blocks.[0", "blocks.[]", "blocks.[!]", "[01].hook_[qk"})
    EXPECT_THAT([&] { Glob{pattern}; }, ThrowsMessage<InvalidArgument>(HasSubstr("is never closed"))) << pattern;
  EXPECT_NO_THROW(Glob("blocks.[]01][!a][^]]"));
}

TEST(Glob, TooManyAlternativesAreRefused) {
  std::string pattern;
  for (int i = 0; i < 13; ++i) pattern += "{a,b}";  // 8192 alternatives
  EXPECT_THAT([&] { Glob{pattern}; }, ThrowsMessage<InvalidArgument>(HasSubstr("more than 4096 patterns")));
}

TEST(SelectSites, KeepsTheOrderOfSitesAndNamesEachOnce) {
  const auto selected = select_sites({Glob("*hook_k"), Glob("*attn*")}, three_sites());
  EXPECT_THAT(names(selected), ElementsAre("blocks.0.attn.hook_q", "blocks.0.attn.hook_k"));
}

TEST(SelectSites, AGlobWithoutSitesNamesTheNearest) {
  EXPECT_THAT(
      [] {
        select_sites({Glob("*attn*"), Glob("hook_embd")}, three_sites());
      },
      ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("'hook_embd': it matches none of the model's 3 sites"),
                                           HasSubstr("did you mean 'hook_embed'?"))));
}

}  // namespace glob_test
}  // namespace gainlens::hooks
