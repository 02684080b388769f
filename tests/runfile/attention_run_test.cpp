#include "runfile/attention_run.h"

#include "runfile/hdf5.h"
#include "runfile/made_attention_run.h"
#include "runfile/made_recommend_run.h"
#include "runfile/run_kind.h"
#include "runfile/run_proof.h"
#include "runfile/run_reader.h"
#include "runfile/stored.h"
#include "support/file_bytes.h"
#include "support/recording_listener.h"
#include "support/refusal.h"
#include "support/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

namespace gainlens::runfile {
namespace attention_run_test {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::made_attention_run;
using ::testing::Not;
using testing::refusal_of;
using testing::TemporaryFolder;

/// Whether two models have the same numbers, bit by bit.
void expect_equal(const UserAttention& found, const UserAttention& expected) {
  EXPECT_EQ(found.users, expected.users);
  EXPECT_EQ(found.layers, expected.layers);
  EXPECT_EQ(found.heads, expected.heads);
  ASSERT_EQ(found.numbers.size(), expected.numbers.size());
  for (const auto& [name, values] : expected.numbers) {
    const std::vector<double>& own = found.numbers.at(name);
    ASSERT_EQ(own.size(), values.size()) << name;
    for (std::size_t i = 0; i < values.size(); ++i)
      ASSERT_TRUE(own[i] == values[i] || (std::isnan(own[i]) && std::isnan(values[i]))) << name << " " << i;
  }
}

/// What is told while a file is read.
std::vector<std::string> told_by_reading(const fs::path& path) {
  const testing::RecordingListener told;
  read_attention_run(path);
  return told.notices();
}

class AttentionRunFile : public ::testing::Test {
 protected:
  fs::path file() const { return folder_.path() / "run.h5"; }
  std::string refusal() const {
    return refusal_of([&] { read_attention_run(file()); });
  }
  std::string refusal_with(const std::function<void(AttentionRun&)>& change) const {
    AttentionRun run = made_attention_run();
    change(run);
    write_attention_run(file(), run);
    return refusal();
  }

  TemporaryFolder folder_;
};

TEST_F(AttentionRunFile, IsNamedIfItHasNoChecksum) {
  write_attention_run(file(), made_attention_run());
  for (const fs::path& path : {folder_.path(), file()})
    EXPECT_THAT(told_by_reading(path), ElementsAre("warning: " + path.string() + ": " + std::string(no_checksum)));
  write_checksum_beside(file());
  EXPECT_THAT(told_by_reading(file()), IsEmpty());
}

TEST_F(AttentionRunFile, IsReadAsItWasWritten) {
  AttentionRun run = made_attention_run();
  run.results[4].reset();  // a training that is not finished
  run.swept[4].reset();
  write_attention_run(file(), run, "1.2.3");
  for (const fs::path& path : {folder_.path(), file()}) {
    EXPECT_TRUE(is_run_of(path, RunKind::recommender_sweep));
    const AttentionRun found = read_attention_run(path);
    EXPECT_EQ(found.request, run.request);
    EXPECT_EQ(found.arms, run.arms);
    EXPECT_EQ(found.seeds, run.seeds);
    EXPECT_EQ(found.units, run.units);
    EXPECT_EQ(found.users.target, run.users.target);
    EXPECT_EQ(found.users.history_length, run.users.history_length);
    EXPECT_EQ(found.users.training_length, run.users.training_length);
    EXPECT_EQ(found.users.item_train_count, run.users.item_train_count);
    EXPECT_EQ(found.last_item, run.last_item);
    ASSERT_EQ(found.swept.size(), 6u);
    for (std::size_t i = 0; i < 6; ++i) {
      ASSERT_EQ(found.swept[i].has_value(), i != 4);
      if (i != 4) expect_equal(*found.swept[i], *run.swept[i]);
    }
  }
}

TEST_F(AttentionRunFile, VariantsMayHaveFewerHeads) {
  AttentionRun run = made_attention_run();
  testing::MadeSweep small;
  small.layers = 1;
  small.heads = 1;
  run.arms[1] = "bft/small";
  for (std::size_t i = 3; i < 6; ++i) {
    Random random(i);
    run.swept[i] = testing::made_attention(run, small, true, random);
  }
  write_attention_run(file(), run);
  const AttentionRun found = read_attention_run(file());
  for (std::size_t i = 0; i < 6; ++i) expect_equal(*found.swept[i], *run.swept[i]);
}

TEST_F(AttentionRunFile, TheSameRunHasTheSameBytes) {
  write_attention_run(file(), made_attention_run(), "1.2.3");
  write_attention_run(folder_.path() / "again.h5", made_attention_run(), "1.2.3");
  EXPECT_TRUE(testing::bytes_of(file()) == testing::bytes_of(folder_.path() / "again.h5"));
}

TEST_F(AttentionRunFile, NumbersThatCannotBeAreRefused) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto with = [&](const char* name, double value) {
    return refusal_with([&](AttentionRun& run) { run.swept[5]->numbers.at(name)[7] = value; });
  };
  EXPECT_THAT(with("entropy", nan), HasSubstr("'attention/entropy' has a number of arm bft, seed 2 that cannot be"));
  EXPECT_THAT(with("last_mass", -0.1), HasSubstr("'attention/last_mass'"));
  EXPECT_THAT(with("kalman_gain", 1.5), HasSubstr("'attention/kalman_gain'"));
  EXPECT_THAT(with("n_eff", 0.5), HasSubstr("'attention/n_eff'"));
  EXPECT_THAT(with("model_gain", nan), HasSubstr("'attention/model_gain'"));  // some, and not all
  EXPECT_THAT(refusal_with([](AttentionRun& run) { run.last_item[3] = 26; }), HasSubstr("'last_item' holds 26"));
  EXPECT_THAT(refusal_with([](AttentionRun& run) { run.users.target[3] = 0; }), HasSubstr("'target' holds 0"));
  EXPECT_THAT(refusal_with([](AttentionRun& run) { run.arms[1] = "plain"; }), HasSubstr("two arms have one name"));
  EXPECT_THAT(refusal_with([](AttentionRun& run) { run.request.erase("backbone"); }), HasSubstr("text 'backbone'"));
}

TEST_F(AttentionRunFile, WrongDatasetsAndCutFilesAreRefused) {
  for (const char* name : {"request", "arm", "seed", "user", "layer", "head", "complete", "target", "last_item",
                           "history_length", "training_length", "item/train_count", "attention/n_eff"}) {
    write_attention_run(file(), made_attention_run());
    const hid_t id = gainlens::testing::open_to_change(file());
    EXPECT_GE(H5Ldelete(id, name, H5P_DEFAULT), 0);
    EXPECT_GE(H5Fclose(id), 0);
    EXPECT_THAT(refusal(), AllOf(HasSubstr("is damaged"), Not(HasSubstr("\n")))) << name;
  }
  write_attention_run(file(), made_attention_run());
  const std::string whole = testing::bytes_of(file());
  for (const std::size_t size : {std::size_t{0}, whole.size() / 2, whole.size() - 1}) {
    testing::write_file(file(), whole.substr(0, size));
    EXPECT_THAT(refusal(), AllOf(HasSubstr("is damaged"), Not(HasSubstr("\n")))) << size;
  }
}

TEST_F(AttentionRunFile, EachReaderKnowsItsRuns) {
  write_attention_run(file(), made_attention_run());
  EXPECT_FALSE(is_run_of(folder_.path(), RunKind::recommenders));
  EXPECT_THAT(refusal_of([&] { RunReader::open(folder_.path()); }),
              HasSubstr("is a sweep of recommenders; gainlens report and inspect read it"));
  EXPECT_THAT(refusal_of([&] { read_recommend_run(file()); }),
              HasSubstr("its format is 'gainlens-recommender-sweep'; a recommender run"));
  write_recommend_run(file(), testing::made_recommend_run());
  EXPECT_FALSE(is_run_of(file(), RunKind::recommender_sweep));
  EXPECT_THAT(refusal(), HasSubstr("its format is 'gainlens-recommend'; a sweep of recommenders"));
}

}  // namespace attention_run_test
}  // namespace gainlens::runfile
