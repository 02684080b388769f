#include "experiment/result_file.h"

#include "runfile/trained_run.h"
#include "support/refusal.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace gainlens::experiment {
namespace result_file_test {

using gainlens::testing::refusal_of;
using gainlens::testing::TemporaryFolder;
using ::testing::HasSubstr;

TEST(ResultFile, IsReadAsItWasWritten) {
  const TemporaryFolder folder;
  StoredResult stored{{{{"training_loss", {3, 2, 1.5}}, {"hr@10", {0.1, 0.2, 0.15}}},
                       {{"gain", {1, 0.5, 1, 0.6, 1, 0.7}}},
                       2,
                       {{"hr@10", 0.25}},
                       {{"rank", {1, 7.5}}, {"loss", {0.1, -1e300, 0}}}}};
  for (const runfile::FilterCurve& curve : runfile::filter_curves())
    stored.result.filter.try_emplace(std::string(curve.name), std::vector<double>(6, 0.25));
  const Result& result = stored.result;
  save_result(folder.path() / "r.safetensors", "bft", 4, stored);
  const Result found = load_result(folder.path() / "r.safetensors", "bft", 4).result;
  EXPECT_EQ(found.curve, result.curve);
  EXPECT_EQ(found.filter, result.filter);
  EXPECT_EQ(found.best_epoch, 2);
  EXPECT_EQ(found.test, result.test);
  EXPECT_EQ(found.scores, result.scores);
  EXPECT_THAT(refusal_of([&] { load_result(folder.path() / "absent", "bft", 4); }), HasSubstr("absent"));
  EXPECT_THAT(refusal_of([&] { load_result(folder.path() / "r.safetensors", "bft", 5); }),
              HasSubstr("not the result of arm bft, seed 5"));
  EXPECT_THAT(refusal_of([&] { load_result(folder.path() / "r.safetensors", "gate", 4); }),
              HasSubstr("not the result of arm gate"));
}

}  // namespace result_file_test
}  // namespace gainlens::experiment
