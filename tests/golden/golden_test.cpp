#include "golden/golden.h"
#include "golden/models_page.h"
#include "golden/relative_error.h"

#include "core/json.h"
#include "models/checkpoint/checkpoint.h"
#include "models/checkpoint/load_decoder.h"
#include "models/checkpoint/torch_dtype.h"
#include "models/families/family.h"
#include "support/gpu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <tuple>

namespace gainlens::golden {
namespace golden_test {

using ::testing::HasSubstr;

class GoldenModel : public ::testing::TestWithParam<std::tuple<std::string, at::ScalarType>> {};

TEST_P(GoldenModel, LogitsAndStatisticsAreTheReferences) {
  const auto& [name, dtype] = GetParam();
  const Golden golden = read_golden(name);
  if (!golden.checkpoint) GTEST_SKIP() << "SKIPPED: shared data models/" << name << " is absent";
  for (const auto& [what, error] : measure(golden, dtype)) {
    EXPECT_LE(error, tolerance(golden, dtype, what)) << what;  // false for NaN
  }
}

/// The site hook_logits of models with a plain head, a soft cap, a scale of the logits, a bias of the head, and
/// experts.
TEST(HookLogits, AreTheReferences) {
  for (const char* name : {"llama", "gemma2", "cohere2", "granite", "phi", "mixtral"}) {
    SCOPED_TRACE(name);
    const Golden golden = read_golden(name);
    ASSERT_TRUE(golden.checkpoint);
    models::LoadOptions load;
    load.dtype = at::kFloat;
    const auto model = models::load_decoder(*golden.checkpoint, load);
    at::Tensor seen;
    hooks::Hooks hooks;
    hooks.observe(hooks::Glob("hook_logits"), [&](const hooks::Site&, const at::Tensor& logits) { seen = logits; });
    model->forward({golden.tokens.unsqueeze(0)}, {}, hooks);
    ASSERT_TRUE(seen.defined());
    EXPECT_LE(relative_error(seen.squeeze(0).index_select(0, golden.logit_positions), golden.expected.at("logits"), 1,
                             Over::largest),
              tolerance(golden, at::kFloat, "logits"));
  }
}

TEST_P(GoldenModel, MeanWeightsOfAllKeysAreThoseOfTheMatrix) {
  const auto& [name, dtype] = GetParam();
  const Golden golden = read_golden(name);
  if (!golden.checkpoint) GTEST_SKIP() << "SKIPPED: shared data models/" << name << " is absent";
  if (dtype == at::kBFloat16) return;  // attention computes in float32 there
  EXPECT_LE(key_mean_error(golden, dtype), dtype == at::kDouble ? 1e-12 : 3e-6);
}

/// The same models on a GPU.
TEST(GoldenModelsOnGpu, LogitsAndStatisticsAreTheReferences) {
  const auto gpu = testing::gpu();
  if (!gpu) GTEST_SKIP() << testing::gpu_is_missing;
  for (const std::string& name : golden_names()) {
    const Golden golden = read_golden(name);
    if (!golden.checkpoint) continue;
    for (const at::ScalarType dtype : {at::kFloat, at::kDouble, at::kBFloat16}) {
      SCOPED_TRACE(name + " in " + std::string(models::dtype_name(dtype)));
      for (const auto& [what, error] : measure(golden, dtype, *gpu))
        EXPECT_LE(error, tolerance(golden, dtype, what)) << what;
    }
  }
}

std::string name_of(const ::testing::TestParamInfo<GoldenModel::ParamType>& info) {
  std::string name = std::get<0>(info.param) + "_" + std::string(models::dtype_name(std::get<1>(info.param)));
  for (char& letter : name) {
    if (letter == '-' || letter == '.') letter = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Reference, GoldenModel,
                         ::testing::Combine(::testing::ValuesIn(golden_names()),
                                            ::testing::Values(at::kFloat, at::kDouble, at::kBFloat16)),
                         name_of);

TEST(Goldens, EveryFamilyHasOne) {
  std::set<std::string> with_golden;
  for (const std::string& name : golden_names()) {
    const Golden golden = read_golden(name);
    if (golden.checkpoint) with_golden.insert(models::read_decoder_config(*golden.checkpoint).family);
  }
  for (const models::Family& family : models::families())
    EXPECT_THAT(with_golden, ::testing::Contains(std::string(family.name)));
}

/// The page without the measurements, which differ in their last digits between processors.
std::string without_measurements(const std::string& page) {
  return page.substr(0, page.find("Largest errors"));
}

TEST(ModelsPage, IsThatOfTheTableOfFamilies) {
  const std::string page = read_text_file(GAINLENS_SOURCE_DIR "/docs/models.md", 1 << 20);
  EXPECT_EQ(without_measurements(page), without_measurements(models_page({}, "")))
      << "run build/tests/golden/golden_table docs/models.md";
}

TEST(ModelsPage, NamesTheFamilyOfTheLargestErrorAndListsTheOthersInAFile) {
  Row bloom, opt;
  bloom.checkpoint = bloom.family = "bloom";
  opt.checkpoint = opt.family = "opt";
  bloom.dtype = opt.dtype = "float32";
  bloom.logits = 2e-6, bloom.worst_error = 1e-5;
  opt.logits = 1e-6, opt.worst_error = 3e-5;
  const std::string page = models_page({bloom, opt}, "");
  EXPECT_THAT(page, HasSubstr("\n| error | 2.0e-06 | 3.0e-05 |"));
  EXPECT_THAT(page, HasSubstr("\n| family | BLOOM | OPT |"));
  EXPECT_THAT(errors_csv({bloom, opt}), HasSubstr("\n\"BLOOM\",bloom,2.0e-06,1.0e-05,0.0e+00,"));
}

TEST(Goldens, HoldEveryStatistic) {
  for (const std::string& name : golden_names()) {
    const Golden golden = read_golden(name);
    const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
    const bool more = has("gate") || has("gpt-oss") || has("qwen3-next") || has("qwen3-5") || has("afmoe") ||
                      has("lfm3") || has("mimo") || has("granite-swa") || has("granitemoe-swa");
    EXPECT_EQ(golden.expected.size(), more ? 19 : 18)
        << name;  // logits, 17 fields, and the gate or the sink logit's mass
    EXPECT_EQ(golden.bfloat16_error.size(), golden.expected.size()) << name;
  }
}

TEST(Goldens, ToleranceInBfloat16IsTwiceTheReferencesError) {
  Golden golden;
  golden.bfloat16_error = {{"logits", 0.01}, {"statistics.n_eff", 0.1}};
  EXPECT_DOUBLE_EQ(tolerance(golden, at::kBFloat16, "logits.fused"), 0.02);
  EXPECT_DOUBLE_EQ(tolerance(golden, at::kBFloat16, "statistics.n_eff"), 0.2);
  EXPECT_DOUBLE_EQ(tolerance(golden, at::kFloat, "logits"), 1e-5);
  EXPECT_DOUBLE_EQ(tolerance(golden, at::kFloat, "statistics.n_eff"), 1e-4);
  EXPECT_DOUBLE_EQ(tolerance(golden, at::kDouble, "statistics.n_eff"), 1e-9);
}

}  // namespace golden_test
}  // namespace gainlens::golden
