// SASRec of RecBole and of SASRec.pytorch. tests/golden/foreign holds models of those programs with the ranks that the
// programs compute themselves (make_foreign_sasrec_golden.py).
#include "recommend/sasrec_foreign.h"

#include "data/item_ranks.h"
#include "formats/torch_bytes.h"
#include "formats/zip_archive.h"
#include "recommend/full_ranking.h"
#include "recommend/recommender_checkpoint.h"
#include "support/file_bytes.h"
#include "support/refusal.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace gainlens::recommend {
namespace foreign_sasrec_test {

using testing::bytes_of;
using ::testing::HasSubstr;
using testing::refusal_of;
using testing::TemporaryFolder;
using testing::write_file;

std::filesystem::path golden(const std::string& name) {
  return std::filesystem::path(GAINLENS_SOURCE_DIR) / "tests/golden/foreign" / name;
}
data::LeaveOneOut tiny() {
  return data::LeaveOneOut(data::read_interactions(golden("tiny.inter")));
}
std::string layout_of(const std::string& name) {
  return name.substr(0, name.find('-'));
}
RecommenderCheckpoint open_golden(const std::string& name) {
  return open_recommender(golden(name) / "model.pth", layout_of(name), {.items = golden(name) / "items.csv"});
}

class ForeignRanks : public ::testing::TestWithParam<const char*> {};

TEST_P(ForeignRanks, AreThoseOfTheOtherProgram) {
  const data::LeaveOneOut split = tiny();
  const RecommenderCheckpoint checkpoint = open_golden(GetParam());
  check_catalogue(checkpoint, split.interactions(), "tiny");
  BackboneScorer scorer(*checkpoint.model);
  const auto theirs = data::read_item_ranks(golden(GetParam()) / "ranks.csv", split, data::HeldOut::test);
  EXPECT_EQ(rank_all(scorer, split, data::HeldOut::test), theirs.ranks.at(0));
}

INSTANTIATE_TEST_SUITE_P(Programs, ForeignRanks,
                         ::testing::Values("recbole", "pmixer-2020", "pmixer-2024", "pmixer-post", "pmixer-pre"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST(ForeignSasRec, ItsShapeIsThatOfTheFile) {
  const auto model = open_golden("recbole").model->document();
  EXPECT_EQ(model["foreign"]["activation"], "relu");
  EXPECT_EQ(model["norm"], "post");
  EXPECT_EQ(model["alignment"], "start");
  EXPECT_EQ(open_golden("pmixer-2020").model->document()["foreign"]["padding"], "zeroed");
  EXPECT_EQ(open_golden("pmixer-2024").model->document()["foreign"]["norm"], "queries");
  EXPECT_EQ(open_golden("pmixer-pre").model->document()["foreign"]["padding"], "seen");
}

TEST(ForeignSasRec, IsStoredAndReadAsAModelOfOurs) {
  const data::LeaveOneOut split = tiny();
  for (const char* name : {"recbole", "pmixer-2020", "pmixer-post"}) {
    const TemporaryFolder folder;
    const RecommenderCheckpoint theirs = open_golden(name);
    save_recommender(folder.path() / "m", *theirs.model, trained_on_split(split, {}, false));
    const RecommenderCheckpoint ours = open_recommender(folder.path() / "m");
    EXPECT_EQ(ours.model->document(), theirs.model->document());
    BackboneScorer one(*theirs.model), other(*ours.model);
    EXPECT_EQ(rank_all(one, split, data::HeldOut::test), rank_all(other, split, data::HeldOut::test)) << name;
  }
}

TEST(ForeignSasRec, PartsThatContradictAreRefused) {
  const auto refusal = [](const std::function<void(SasRecConfig&)>& change) {
    SasRecConfig config{.items = 3, .norm = NormPlace::post};
    change(config);
    return refusal_of([&] { check(config, "m"); });
  };
  using Norm = ForeignParts::Norm;
  using Padding = ForeignParts::Padding;
  EXPECT_EQ(refusal([](auto& config) { config.foreign = {.norm = Norm::last, .padding = Padding::seen}; }), "accepted");
  EXPECT_THAT(refusal([](auto& config) {
                config.norm = NormPlace::pre;
                config.foreign.norm = Norm::queries;
              }),
              HasSubstr("and 'norm' is pre"));
  EXPECT_THAT(refusal([](auto& config) {
                config.alignment = Alignment::start;
                config.foreign.padding = Padding::seen;
              }),
              HasSubstr("'alignment' must be end"));
  EXPECT_THAT(refusal([](auto& config) {
                config.arm = Arm::bft;
                config.foreign.activation = ForeignParts::Activation::relu;
              }),
              HasSubstr("'foreign' is for plain models"));
}

TEST(ForeignSasRec, ItemsHaveTheirNames) {
  data::Interactions other = data::read_interactions(golden("tiny.inter"));
  std::swap(other.items[2], other.items[3]);
  EXPECT_THAT(refusal_of([&] { check_catalogue(open_golden("recbole"), other, "tiny"); }), HasSubstr("other names"));
  // Without their names the items are numbers.
  const auto numbered = open_recommender(golden("pmixer-pre") / "model.pth", "pmixer");
  EXPECT_THAT(refusal_of([&] { check_catalogue(numbered, tiny().interactions(), "tiny"); }),
              HasSubstr("the checkpoint numbers its items"));
}

class ForeignFiles : public ::testing::Test {
 protected:
  std::string refusal(const std::string& layout, const ForeignOptions& options = {}) {
    return refusal_of([&] { open_recommender(folder_.path() / "model.pth", layout, options); });
  }
  std::filesystem::path copied(const std::string& name, const std::string& file) {
    return write_file(folder_.path() / file, bytes_of(golden(name) / file));
  }
  /// The checkpoint with a text of its configuration replaced by one that is as long, and the checksum that belongs to
  /// it. The pickle is the first entry that torch.save writes.
  void write_changed(const std::string& name, const std::string& from, const std::string& to) {
    std::string bytes = bytes_of(golden(name) / "model.pth");
    ASSERT_EQ(from.size(), to.size());
    std::size_t at = bytes.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    for (; at != std::string::npos; at = bytes.find(from, at)) bytes.replace(at, from.size(), to);
    const std::string entry = bytes.substr(30, static_cast<unsigned char>(bytes[26]));
    const auto archive = formats::ZipArchive::open(golden(name) / "model.pth");
    const auto pickle = archive.at(entry);
    const std::string before(reinterpret_cast<const char*>(pickle.data()), pickle.size());
    const std::string after = bytes.substr(bytes_of(golden(name) / "model.pth").find(before), before.size());
    const std::string old_sum = formats::little(formats::crc_32(before), 4);
    for (at = bytes.find(old_sum); at != std::string::npos; at = bytes.find(old_sum, at))
      bytes.replace(at, 4, formats::little(formats::crc_32(after), 4));
    write_file(folder_.path() / "model.pth", bytes);
  }

  TemporaryFolder folder_;
  ForeignOptions named_{.items = golden("recbole") / "items.csv"};
};

TEST_F(ForeignFiles, WhatRecBoleDoesNotSayIsAskedFor) {
  copied("recbole", "model.pth");
  EXPECT_THAT(refusal("recbole"), HasSubstr("give --items FILE.csv with the columns item and id"));
  EXPECT_THAT(refusal("recbole", {.heads = 2, .items = named_.items}), HasSubstr("--heads: the layout recbole tells"));
  const auto few = write_file(folder_.path() / "few.csv", "item,id\na,1\nb,2\n");
  EXPECT_THAT(refusal("recbole", {.items = few}), HasSubstr("few.csv: names 2 items; "));
  EXPECT_THAT(refusal("pmixer"), HasSubstr("args.txt: no such file"));
  EXPECT_THAT(refusal("gainlens", {.items = few}), HasSubstr("--items: a checkpoint of gainlens tells it"));
}

TEST_F(ForeignFiles, OptionsThatOursDoesNotHaveAreRefused) {
  write_changed("recbole", "relu", "tanh");
  EXPECT_THAT(refusal("recbole", named_), HasSubstr("'hidden_act' is 'tanh'; gelu, relu and swish are read"));
  write_changed("recbole", "final_config_dict", "final_config_dicT");
  EXPECT_THAT(refusal("recbole", named_), HasSubstr("must be RecBole's, with 'final_config_dict'"));
  write_changed("recbole", "state_dict", "state_dicT");
  EXPECT_THAT(refusal("recbole", named_), HasSubstr("has no 'state_dict'"));
  write_changed("recbole", "item_embedding.weight", "item_embedding.weighT");
  EXPECT_THAT(refusal("recbole", named_), HasSubstr("no tensor 'item_embedding.weight'"));
  write_changed("recbole", "n_layers", "m_layers");
  EXPECT_THAT(refusal("recbole", named_), HasSubstr("'config' has no option 'n_layers'"));
}

TEST_F(ForeignFiles, ArgsOfSasRecPytorchDecide) {
  copied("pmixer-post", "model.pth");
  const auto refused = [&](const std::string& text, const std::string& reason) {
    write_file(folder_.path() / "args.txt", text);
    EXPECT_THAT(refusal("pmixer"), HasSubstr(reason)) << text;
  };
  const std::string usual = "maxlen,5\nnum_blocks,2\nnum_heads,2\n";
  refused("maxlen,7\nnum_blocks,2\nnum_heads,2\n", "'maxlen' is 7; the checkpoint has 6 positions");
  refused("maxlen,6\nnum_blocks,2\nnum_heads,2\nnorm_first,True\n", "they are not of one version");
  refused(usual + "norm_first,yes\n", "'norm_first' is 'yes'; must be True or False");
  refused(usual + "maxlen,5\n", "'maxlen' stands twice");
  refused("maxlen\n", "the line 'maxlen' is not name,value");
  refused("maxlen,5\nnum_heads,2\n", "has no 'num_blocks'");
  refused("maxlen,5\nnum_blocks,1\nnum_heads,2\nnorm_first,True\n", "is no tensor of this model");
  refused("maxlen,5\nnum_blocks,3\nnum_heads,2\nnorm_first,True\n", "no tensor 'attention_layernorms.2.weight'");
  refused("maxlen,5\nnum_blocks,2\nnum_heads,4\nnorm_first,True\n", "heads must divide the width");
  refused("maxlen,5\nnum_blocks,two\nnum_heads,2\n", "'num_blocks' is 'two'; must be a whole number");
  write_file(folder_.path() / "args.txt", usual + "norm_first,True\n");
  EXPECT_THAT(refusal("pmixer", {.heads = 3}), HasSubstr("--heads: 3; "));
}

}  // namespace foreign_sasrec_test
}  // namespace gainlens::recommend
