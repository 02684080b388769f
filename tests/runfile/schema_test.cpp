#include "runfile/schema.h"

#include "runfile/made_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace gainlens::runfile {
namespace schema_test {

using testing::made_request;

std::set<std::string> names_in(Group group, const Request& request) {
  std::set<std::string> names;
  for (const DatasetInfo& info : schema()) {
    if (info.group == group && info.present(request)) names.insert(info.name);
  }
  return names;
}

const DatasetInfo& line(Group group, const std::string& name) {
  return *std::find_if(schema().begin(), schema().end(),
                       [&](const DatasetInfo& info) { return info.group == group && info.name == name; });
}

TEST(Schema, HoldsTheDatasetsOfTheDocument) {
  Request request = made_request();
  request.sink_logits = true;
  const std::set<std::string> last_quarter = {"n_eff",
                                              "entropy",
                                              "residual",
                                              "observation_precision",
                                              "log_observation_precision",
                                              "kalman_gain",
                                              "kalman_gain_scaled",
                                              "gate"};
  const std::set<std::string> half = {"kalman_gain_half",    "kalman_gain_scaled_half",
                                      "without_first_n_eff", "without_first_kalman_gain",
                                      "without_sinks_n_eff", "without_sinks_kalman_gain"};
  std::set<std::string> summary = last_quarter;
  summary.insert(half.begin(), half.end());
  summary.insert("bos_mass");
  summary.merge(std::set<std::string>{"estimate_norm", "gained_estimate_norm", "without_first_norm"});
  std::set<std::string> variances;
  for (const std::string& name : summary) variances.insert(name + "_var");
  summary.merge(variances);
  summary.merge(std::set<std::string>{"first_mass", "column_mean", "sink_logit_mass", "nll"});
  summary.merge(std::set<std::string>{"sink_bound", "sink_bound_gain", "sink_bound_vacuous", "sink_bound_gain_violated",
                                      "sink_bound_slack", "sink_bound_slack_min", "sink_alignment"});
  EXPECT_EQ(names_in(Group::summary, request), summary);

  std::set<std::string> profile = last_quarter;
  profile.merge(std::set<std::string>{"without_first_n_eff", "without_first_kalman_gain", "bos_mass"});
  std::set<std::string> queries = profile;
  profile.insert("sink_logit_mass");
  queries.insert("first_mass");
  EXPECT_EQ(names_in(Group::profile, request), profile);
  EXPECT_EQ(names_in(Group::queries, request), queries);
  EXPECT_EQ(names_in(Group::values, request), (std::set<std::string>{"norm", "first_norm", "min_norm", "variance"}));
}

TEST(Schema, SinksAndTheStreamSinceVersion4) {
  Request request = made_request();
  EXPECT_EQ(names_in(Group::sinks, request),
            (std::set<std::string>{"position", "token", "text", "queries", "column_mean", "second_half_mean",
                                   "last_quarter_mean", "value_norm_ratio", "key_norm_ratio", "key_query_cosine",
                                   "stream_ratio", "stream_ratio_after", "stream_cosine", "stream_dimension"}));
  EXPECT_EQ(names_in(Group::stream, request),
            (std::set<std::string>{"position", "token", "dimension", "value", "median"}));
  EXPECT_EQ(line(Group::sinks, "text").run_shape(request, 8), (std::vector<std::int64_t>{2, 2, 2, 4, 16}));
  EXPECT_EQ(line(Group::stream, "value").run_shape(request, 8), (std::vector<std::int64_t>{2, 2, 2, 3}));
  EXPECT_EQ(line(Group::stream, "median").shard_shape(request, 8), (std::vector<std::int64_t>{2}));
  EXPECT_EQ(root_axes(request).size(), 9u);
  request.version = 3;
  EXPECT_TRUE(names_in(Group::sinks, request).empty());
  EXPECT_TRUE(names_in(Group::stream, request).empty());
  EXPECT_EQ(root_axes(request).size(), 7u);
}

TEST(Schema, IntegersAndTextsOfAResultAreChecked) {
  const Request request = made_request();
  const ShardResult blank = blank_result(request, 8);
  EXPECT_EQ(result_mismatch(blank, request, 8), "");
  EXPECT_EQ(blank.sinks.at("token").values.at(5), -1);
  EXPECT_TRUE(std::isnan(blank.sinks.at("column_mean").values.at(5)));
  EXPECT_EQ(blank.sink_text.size(), 2u * 4 * 16);
  for (const double wrong : {0.5, -2.0, std::nan(""), 0x1p60}) {
    ShardResult result = blank;
    result.sinks.at("token").values[5] = wrong;
    EXPECT_THAT(result_mismatch(result, request, 8), ::testing::HasSubstr("sinks/token holds")) << wrong;
  }
  for (const std::string& wrong : {std::string("\xE2\x96"), std::string("a\0b", 3)}) {
    ShardResult result = blank;
    result.sink_text[7] = wrong;
    EXPECT_EQ(result_mismatch(result, request, 8), "sinks/text holds a text that is not UTF-8 without NUL");
  }
  ShardResult result = blank;
  result.sink_text.pop_back();
  EXPECT_EQ(result_mismatch(result, request, 8), "sinks/text has 127 texts; the request makes it 128");
  Request older = request;
  older.version = 3;
  ShardResult more = blank_result(older, 8);
  more.sink_text = {"a"};
  EXPECT_EQ(result_mismatch(more, older, 8), "texts of sinks are no dataset of this request");
}

TEST(Schema, ARunOfTheFirstVersionHoldsLess) {
  Request request = made_request();
  request.version = 1;
  EXPECT_EQ(names_in(Group::values, request), (std::set<std::string>{"norm", "first_norm"}));
  const auto summary = names_in(Group::summary, request);
  EXPECT_TRUE(summary.contains("n_eff_var"));
  for (const char* name : {"estimate_norm", "estimate_norm_var", "sink_bound", "sink_bound_slack_min"}) {
    EXPECT_FALSE(summary.contains(name)) << name;
  }
}

TEST(Schema, AbsentThingsAreAbsent) {
  Request request = made_request();
  request.gated = false;
  request.per_query = false;
  request.nll = false;
  const auto summary = names_in(Group::summary, request);
  for (const char* name : {"gate", "gate_var", "sink_logit_mass", "nll"}) EXPECT_FALSE(summary.contains(name)) << name;
  EXPECT_FALSE(names_in(Group::profile, request).contains("gate"));
  EXPECT_TRUE(names_in(Group::queries, request).empty());

  request = made_request();
  request.statistics = false;
  EXPECT_EQ(names_in(Group::summary, request), (std::set<std::string>{"nll"}));
  for (const Group group : {Group::profile, Group::values, Group::queries})
    EXPECT_TRUE(names_in(group, request).empty());
}

TEST(Schema, ShapesByHand) {
  const Request request = made_request();  // 2 lengths, 2 samples, 2 layers, 4 heads, 2 KV heads
  using Shape = std::vector<std::int64_t>;
  EXPECT_EQ(line(Group::summary, "n_eff").run_shape(request, 8), (Shape{2, 2, 2, 4}));
  EXPECT_EQ(line(Group::summary, "first_mass").run_shape(request, 8), (Shape{2, 2, 2, 4, 8}));
  EXPECT_EQ(line(Group::summary, "nll").run_shape(request, 8), (Shape{2, 2}));
  EXPECT_EQ(line(Group::summary, "nll").shard_shape(request, 8), Shape{});
  EXPECT_EQ(line(Group::profile, "gate").run_shape(request, 8), (Shape{2, 2, 2, 4, 64}));
  EXPECT_EQ(line(Group::values, "norm").run_shape(request, 8), (Shape{2, 2, 2, 2, 64}));
  EXPECT_EQ(line(Group::values, "min_norm").run_shape(request, 8), (Shape{2, 2, 2, 2}));
  EXPECT_EQ(line(Group::values, "first_norm").shard_shape(request, 8), (Shape{2, 2, 8}));
  EXPECT_EQ(line(Group::queries, "n_eff").run_shape(request, 24), (Shape{2, 2, 4, 24}));
  EXPECT_EQ(line(Group::queries, "first_mass").run_shape(request, 24), (Shape{2, 2, 4, 24, 8}));
  EXPECT_EQ(line(Group::queries, "n_eff").path(24), "queries/24/n_eff");
  EXPECT_EQ(line(Group::summary, "n_eff").path(24), "summary/n_eff");
}

TEST(Schema, ChunksStayWithinOneMebibyte) {
  Request request = made_request();
  request.heads = 16;
  using Shape = std::vector<std::int64_t>;
  const DatasetInfo& n_eff = line(Group::queries, "n_eff");
  EXPECT_EQ(n_eff.shard_chunk(request, 24), (Shape{1, 16, 24}));
  EXPECT_EQ(n_eff.shard_chunk(request, 10240), (Shape{1, 12, 10240}));  // 131072 / 10240 = 12.8
  EXPECT_EQ(n_eff.shard_chunk(request, 200000), (Shape{1, 1, 131072}));
  EXPECT_EQ(line(Group::queries, "first_mass").shard_chunk(request, 20000), (Shape{1, 1, 16384, 8}));
  EXPECT_TRUE(line(Group::profile, "n_eff").shard_chunk(request, 24).empty());
}

TEST(Schema, CoordinatesAreLengthsLayersOrIndices) {
  const Request request = made_request();
  EXPECT_EQ(axis_values(Axis::length, request, 0), (std::vector<std::int64_t>{8, 24}));
  EXPECT_EQ(axis_values(Axis::layer, request, 0), (std::vector<std::int64_t>{3, 5}));
  EXPECT_EQ(axis_values(Axis::kv_head, request, 0), (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(axis_values(Axis::query, request, 3), (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(axis_size(Axis::bin, request, 0), 64);
  EXPECT_EQ(name_of(Axis::kv_head), "kv_head");
}

TEST(Schema, OnlyFloat64IsStoredAsFloat64) {
  Request request = made_request();
  for (const char* dtype : {"float32", "bfloat16", "float16"}) {
    request.dtype = dtype;
    EXPECT_FALSE(stores_float64(request));
  }
  request.dtype = "float64";
  EXPECT_TRUE(stores_float64(request));
}

TEST(Schema, BlankResultFitsAndMismatchesAreNamed) {
  const Request request = made_request();
  ShardResult result = blank_result(request, 8);
  EXPECT_EQ(result_mismatch(result, request, 8), "");
  EXPECT_TRUE(std::isnan(result.summary.at("nll").values.at(0)));
  EXPECT_EQ(result_mismatch(result, request, 24),
            "queries/24/n_eff has shape [2, 4, 8] and 64 values; the request makes it [2, 4, 24]");
  result.values["other"] = {};
  EXPECT_EQ(result_mismatch(result, request, 8), "values/other is no dataset of this request");
  result.values.erase("other");
  result.profile.erase("gate");
  EXPECT_EQ(result_mismatch(result, request, 8), "profile/gate is missing");
}

}  // namespace schema_test
}  // namespace gainlens::runfile
