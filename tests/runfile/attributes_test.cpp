#include "runfile/coordinates.h"

#include "runfile/made_run.h"
#include "runfile/run_file.h"
#include "runfile/run_reader.h"
#include "runfile/stored.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace gainlens::runfile {
namespace attributes_test {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::made_request;
using ::testing::Not;
using testing::StoredFile;
using testing::TemporaryFolder;

/// An attribute at the root of the run of a request.
std::string root_attribute(const Request& request, const std::string& name, std::string_view version = {}) {
  const TemporaryFolder folder;
  write_run_file(folder.path() / "run.h5", request, {}, version);
  return StoredFile(folder.path() / "run.h5").attribute("/", name);
}

TEST(Attributes, TheFileSaysWhatItIs) {
  const Request request = made_request();
  EXPECT_EQ(root_attribute(request, "format"), "gainlens-sweep");
  EXPECT_EQ(root_attribute(request, "Conventions"), "gainlens-sweep-1, attribute names of CF-1.11");
  EXPECT_EQ(root_attribute(request, "family"), "made");
  EXPECT_EQ(root_attribute(request, "title"),
            "Attention statistics of every head of a made model at context lengths 8, 24");
  EXPECT_EQ(root_attribute(request, "references"),
            "Precision Tracked Transformer via Kalman Filtering, Kriging and Process Noise (Long, Agarwal, "
            "Markovic-Voronov, Wang, Li)");
  EXPECT_EQ(root_attribute(request, "source"),
            "gainlens sweep of a model of family made (2 layers: 3, 5; 4 heads, 2 KV heads of 16 dimensions) in "
            "float32 on cpu, statistics version 4: 2 chunks (consecutive) of each context length 8, 24 from the text "
            "with sha256 " +
                std::string(64, 'd') + "; BOS policy: always: token 1.");
}

TEST(Attributes, TheVersionOfTheProgramIsNamedWhereItIsKnown) {
  EXPECT_EQ(root_attribute(made_request(), "gainlens_version", "9.8.7"), "9.8.7");
  EXPECT_EQ(root_attribute(made_request(), "gainlens_version"), "(absent)");
}

TEST(Attributes, TheSourceFollowsTheRequest) {
  Request request = made_request();
  request.statistics = false;
  request.nested = true;
  request.spread = 500;
  request.lengths = {16, 17, 18, 19, 64};
  request.samples = 1;
  request.kv_heads = 1;
  request.tokenizer = "tokens";
  request.layers = {0, 1};
  request.bos.reset();
  request.bos_policy = "no BOS (--bos never)";
  EXPECT_THAT(root_attribute(request, "source"),
              AllOf(HasSubstr("(2 layers: 0, 1; 4 heads, 1 KV head of 16 dimensions)"),
                    HasSubstr(": 1 chunk (nested, spread over 500 tokens) of each context length 16 to 19, 64 from "
                              "token ids with sha256 ddd"),
                    HasSubstr("; BOS policy: no BOS (--bos never).")));
  EXPECT_EQ(root_attribute(request, "title"),
            "Negative log likelihood of a made model at context lengths 16 to 19, 64");
}

TEST(Attributes, TextOfAnySizeIsStoredOnOneLine) {
  Request request = made_request();
  request.family = "line\nbreak";
  request.bos_policy = std::string(100000, 'x');
  request.lengths.resize(40000);
  for (std::size_t i = 0; i < request.lengths.size(); ++i) request.lengths[i] = static_cast<std::int64_t>(2 * i + 8);
  request.statistics = false;
  EXPECT_EQ(root_attribute(request, "family"), "line\\x0abreak");
  EXPECT_EQ(root_attribute(request, "title"),
            "Negative log likelihood of a line\\x0abreak model at context lengths 40000 numbers from 8 to 80006");
  const std::string source = root_attribute(request, "source");
  EXPECT_LT(source.size(), 2000u);
  EXPECT_THAT(source, HasSubstr("xxx... (100000 bytes)"));
  request.family.clear();
  EXPECT_EQ(root_attribute(request, "family"), "");
}

TEST(Attributes, MassesSayWhereTheyAre0ByConstruction) {
  const TemporaryFolder folder;
  write_run_file(folder.path() / "run.h5", made_request(), {});
  const StoredFile file(folder.path() / "run.h5");
  for (const char* path : {"summary/bos_mass", "summary/bos_mass_var"})
    EXPECT_EQ(
        file.attribute(path, "comment"),
        "0 by construction where key_0_visible is 0: the layer's window hides key 0 from every query of the mean");
  for (const char* path : {"profile/bos_mass", "queries/24/bos_mass", "summary/first_mass", "summary/column_mean",
                           "queries/8/first_mass", "summary/sink_bound_vacuous", "summary/sink_alignment"}) {
    EXPECT_THAT(file.attribute(path, "comment"), HasSubstr("by construction")) << path;
  }
  EXPECT_THAT(file.attribute("summary/without_first_n_eff", "comment"), HasSubstr("over all visible keys"));
  for (const char* path : {"summary/n_eff", "summary/nll", "values/norm", "queries/24/gate"})
    EXPECT_EQ(file.attribute(path, "comment"), "(absent)") << path;
}

TEST(Attributes, DatasetsKeepUnitAndMeaning) {
  const TemporaryFolder folder;
  write_run_file(folder.path() / "run.h5", made_request(), {});
  const StoredFile file(folder.path() / "run.h5");
  EXPECT_EQ(file.attribute("summary/n_eff", "units"), "keys");
  EXPECT_EQ(file.attribute("summary/n_eff", "long_name"),
            "Kish effective number of keys, mean over last-quarter queries");
  EXPECT_EQ(file.attribute("complete", "units"), "1");
  EXPECT_EQ(file.attribute("complete", "long_name"), "1 where the chunk has been measured");
}

TEST(Attributes, ARunWithSinkLogitsSaysWhichWeightsANumberIsAbout) {
  const TemporaryFolder folder;
  Request request = made_request();
  request.sink_logits = true;
  write_run_file(folder.path() / "run.h5", request, {});
  const StoredFile file(folder.path() / "run.h5");
  for (const char* path : {"summary/n_eff", "summary/entropy_var", "profile/kalman_gain", "queries/24/residual",
                           "summary/sink_bound", "summary/kalman_gain_half"})
    EXPECT_THAT(file.attribute(path, "long_name"), HasSubstr("; of weights renormalised to sum to 1 over the keys"))
        << path;
  for (const char* path : {"summary/bos_mass", "profile/bos_mass", "summary/first_mass", "summary/column_mean"})
    EXPECT_THAT(file.attribute(path, "long_name"), HasSubstr("over the keys and the learned sink logit together"))
        << path;
  for (const char* path :
       {"summary/nll", "values/norm", "values/first_norm", "summary/gate", "profile/sink_logit_mass"})
    EXPECT_EQ(file.attribute(path, "long_name").find("weights "), std::string::npos) << path;
}

TEST(Attributes, AFileOfTheFirstEditionIsReadAsItIs) {
  const TemporaryFolder folder;
  testing::make_run(folder.path(), made_request());
  const auto numbers = [&] {
    std::vector<double> all;
    const RunReader reader = RunReader::open(folder.path());
    EXPECT_EQ(reader.attention(), made_request().attention);
    for (const std::string& name : reader.names()) {
      for (const double number : reader.read(name).values) all.push_back(number);
    }
    return all;
  };
  const std::vector<double> expected = numbers();
  testing::make_first_edition(folder.path() / "run.h5");
  {
    const StoredFile file(folder.path() / "run.h5");
    EXPECT_EQ(file.attribute("/", "source"), "(absent)");
    EXPECT_EQ(file.attribute("layer", "units"), "(absent)");
    EXPECT_FALSE(file.has("summary/token_offset"));
    EXPECT_THAT(file.names("summary"), Not(::testing::Contains("attention")));
    EXPECT_EQ(file.attribute("summary/n_eff", "units"), "keys");
  }
  EXPECT_EQ(numbers(), expected);
}

}  // namespace attributes_test
}  // namespace gainlens::runfile
