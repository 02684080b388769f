#include "interventions/write.h"

#include "core/error.h"
#include "support/file_bytes.h"
#include "support/refusal.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gainlens::interventions {
namespace write_test {

using gainlens::testing::refusal_of;
using ::testing::HasSubstr;

TEST(InterventionText, IsReadAndWrittenBack) {
  for (const char* text : {"blocks.0.attn.hook_z[head=1]=zero", "hook_embed[position=3]=mean",
                           "blocks.1.attn.hook_v[head=0][position=2]=resample", "blocks.0.hook_mlp_out=0.3",
                           "blocks.0.attn.hook_gate[head=2]=-2 + blocks.1.hook_attn_out=zero"})
    EXPECT_EQ(parse_intervention(text).text(), text);
  const Intervention joint = parse_intervention("a[head=4]=zero + b[position=7]=1e-1");
  ASSERT_EQ(joint.writes.size(), 2u);
  EXPECT_EQ(joint.writes[0].head, 4);
  EXPECT_FALSE(joint.writes[0].position);
  EXPECT_EQ(joint.writes[1].position, IndexRange::one(7));
  EXPECT_EQ(joint.writes[1].mode, Mode::scale);
  EXPECT_EQ(joint.writes[1].factor, 0.1);
  EXPECT_EQ(joint.text(), "a[head=4]=zero + b[position=7]=0.1");
}

/// Lists, ranges and braces stand for writes that act together.
TEST(InterventionText, ListsStandForSeveralWrites) {
  const auto read = [](const std::string& text) { return parse_intervention(text).text(); };
  EXPECT_EQ(read("a[head=1,3]=zero"), "a[head=1]=zero + a[head=3]=zero");
  EXPECT_EQ(read("a[head=1:3]=zero"), "a[head=1]=zero + a[head=2]=zero");
  EXPECT_EQ(read("a[position=3,41:81]=2"), "a[position=3]=2 + a[position=41:81]=2");
  EXPECT_EQ(read("blocks.{5,11}.hook_mlp_out=zero"), "blocks.5.hook_mlp_out=zero + blocks.11.hook_mlp_out=zero");
  EXPECT_EQ(read("blocks.{1:3}.attn.hook_z[head=0,2]=mean"),
            "blocks.1.attn.hook_z[head=0]=mean + blocks.1.attn.hook_z[head=2]=mean + "
            "blocks.2.attn.hook_z[head=0]=mean + blocks.2.attn.hook_z[head=2]=mean");
  EXPECT_EQ(read("p[position=2:9][key=0]=knockout"), "p[position=2:9][key=0]=knockout");
  EXPECT_EQ(read("p[key=0,4:6]=zero"), "p[key=0]=zero + p[key=4:6]=zero");
  const Write write = parse_intervention("p[position=2:9][key=1:3]=knockout").writes.front();
  EXPECT_EQ(write.position, (IndexRange{2, 9}));
  EXPECT_EQ(write.key, (IndexRange{1, 3}));
  EXPECT_EQ(write.mode, Mode::knockout);
}

TEST(InterventionText, WrongListsAreRefused) {
  const auto refusal = [](const std::string& text) { return refusal_of([&] { parse_intervention(text); }); };
  EXPECT_THAT(refusal("a[position=5:5]=zero"), HasSubstr("position=5:5 holds nothing: STOP is not included"));
  EXPECT_THAT(refusal("a[position=5:]=zero"), HasSubstr("position=5: must be a whole number from 0 on, or START:STOP"));
  EXPECT_THAT(refusal("a[head=1,]=zero"), HasSubstr("head= must be a whole number"));
  EXPECT_THAT(refusal("a[head=1,1]=zero"), HasSubstr("two writes change the same numbers of a"));
  EXPECT_THAT(refusal("a[position=1:5]=zero + a[position=4]=zero"), HasSubstr("two writes change the same numbers"));
  EXPECT_EQ(refusal("a[position=1:4]=zero + a[position=4]=zero"), "accepted");
  EXPECT_THAT(refusal("blocks.{1,2.hook=zero"), HasSubstr("the brace '{' is not closed"));
  EXPECT_THAT(refusal("blocks.{}.hook=zero"), HasSubstr("must be a whole number from 0 on, or START:STOP"));
  EXPECT_THAT(refusal("a[head=0:99999999]=zero"), HasSubstr("the most are 4096"));
  EXPECT_THAT(refusal("a.{0:100}[head=0:100]=zero"), HasSubstr("the most are 4096"));
  EXPECT_THAT(refusal("p[key=0]=knockout + p[key=4]=knockout"), HasSubstr("give a knockout one range of keys"));
}

TEST(InterventionText, TheKindOfAWriteLeavesOutItsPlace) {
  const auto kind = [](const std::string& text) { return parse_intervention(text).writes.front().kind(); };
  EXPECT_EQ(kind("blocks.3.attn.hook_z[head=2]=zero"), "attn.hook_z=zero");
  EXPECT_EQ(kind("blocks.12.hook_resid_pre[position=2]=patch"), "hook_resid_pre=patch");
  EXPECT_EQ(kind("hook_embed[position=2]=0.5"), "hook_embed=0.5");
}

TEST(InterventionText, BracketsStandInEitherOrder) {
  EXPECT_EQ(parse_intervention("a[position=1][head=2]=zero").text(), "a[head=2][position=1]=zero");
}

TEST(InterventionText, TheSameInterventionHasOneKey) {
  for (const char* zero : {"0", "0.0", "-0", "0e5"})
    EXPECT_EQ(parse_intervention(std::string("a=") + zero).text(), "a=zero");
  EXPECT_EQ(parse_intervention("a=0.50").key(), parse_intervention("a=5e-1").key());
  EXPECT_EQ(parse_intervention("a=zero + b=2").key(), parse_intervention("b=2 + a=0").key());
  EXPECT_NE(parse_intervention("a=zero + b=2").key(), parse_intervention("a=zero").key());
}

TEST(InterventionText, WrongOnesAreRefused) {
  const auto refusal = [](const std::string& text) { return refusal_of([&] { parse_intervention(text); }); };
  EXPECT_THAT(refusal(""), HasSubstr("must be SITE[head=H][position=P][key=K]=VALUE"));
  EXPECT_THAT(refusal("a"), HasSubstr("must be SITE[head=H][position=P][key=K]=VALUE"));
  EXPECT_THAT(refusal("=zero"), HasSubstr("must be SITE[head=H][position=P][key=K]=VALUE"));
  EXPECT_THAT(refusal("a="), HasSubstr("after the site must stand =VALUE"));
  EXPECT_THAT(refusal("a[head=1]"), HasSubstr("after the site must stand =VALUE"));
  EXPECT_THAT(refusal("a[heed=1]=zero"), HasSubstr("'[heed=': a bracket must be [head=H], [position=P] or [key=K]"));
  EXPECT_THAT(refusal("a[head]=zero"), HasSubstr("a bracket must be [head=H], [position=P] or [key=K]"));
  EXPECT_THAT(refusal("a[head=1=zero"), HasSubstr("a bracket must be [head=H], [position=P] or [key=K]"));
  EXPECT_THAT(refusal("a[head=-1]=zero"), HasSubstr("head=-1 must be a whole number from 0 on"));
  EXPECT_THAT(refusal("a[head=1.5]=zero"), HasSubstr("head=1.5 must be a whole number from 0 on"));
  EXPECT_THAT(refusal("a[head=99999999999999999999]=zero"), HasSubstr("must be a whole number from 0 on"));
  EXPECT_THAT(refusal("a[head=1][head=2]=zero"), HasSubstr("[head=..] stands twice"));
  EXPECT_THAT(refusal("a=1"), HasSubstr("a factor of 1 changes nothing"));
  EXPECT_THAT(refusal("a=zeroo"), HasSubstr("'zeroo' is no file"));
  EXPECT_THAT(refusal("a=zeroo"), HasSubstr("did you mean 'zero'?"));
  for (const char* number : {"nan", "NaN", "-nan", "inf", "-Infinity", "1e999"})
    EXPECT_THAT(refusal(std::string("a=") + number), HasSubstr("must be a finite number")) << number;
  EXPECT_THAT(refusal("a[head=1]=zero + a[head=1]=mean"), HasSubstr("two writes change the same numbers of a"));
  EXPECT_THAT(refusal("a[head=1]=zero + a[position=3]=zero"), HasSubstr("two writes change the same numbers of a"));
  EXPECT_EQ(refusal("a[head=1]=zero + a[head=2]=zero"), "accepted");
  EXPECT_THAT(refusal("a[head=1]=zero + "), HasSubstr("must be SITE[head=H][position=P][key=K]=VALUE"));
}

TEST(InterventionText, ModesHaveNames) {
  EXPECT_EQ(parse_mode("mean", "--modes"), Mode::mean);
  EXPECT_THAT(refusal_of([] { parse_mode("maen", "--modes"); }),
              HasSubstr("--modes: 'maen'; must be zero, mean or resample; did you mean 'mean'?"));
}

TEST(InterventionFile, IsReadAsItWasWritten) {
  const gainlens::testing::TemporaryFolder folder;
  const std::vector<Intervention> all = {parse_intervention("a[head=1]=zero"), parse_intervention("b=0.5 + c=mean")};
  const auto file = gainlens::testing::write_file(folder.path() / "i.json", interventions_text(all));
  const std::vector<Intervention> read = read_interventions(file);
  ASSERT_EQ(read.size(), 2u);
  EXPECT_EQ(read[0].text(), "a[head=1]=zero");
  EXPECT_EQ(read[1].text(), "b=0.5 + c=mean");
}

TEST(InterventionFile, WrongOnesAreRefused) {
  const gainlens::testing::TemporaryFolder folder;
  const auto refusal = [&](const std::string& text) {
    const auto file = gainlens::testing::write_file(folder.path() / "i.json", text);
    return refusal_of([&] { read_interventions(file); });
  };
  for (const char* text : {"[]", "{}", R"({"interventions": 3})", R"({"interventions": [], "more": 1})"})
    EXPECT_THAT(refusal(text), HasSubstr("i.json: must hold {\"interventions\"")) << text;
  EXPECT_THAT(refusal(R"({"interventions": []})"), HasSubstr("holds no intervention"));
  EXPECT_THAT(refusal(R"({"interventions": [3]})"), HasSubstr("an intervention must be a text"));
  EXPECT_THAT(refusal(R"({"interventions": ["a=nan"]})"), HasSubstr("i.json: intervention 'a=nan'"));
}

}  // namespace write_test
}  // namespace gainlens::interventions
