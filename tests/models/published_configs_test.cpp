// Configurations of published checkpoints: configs/published.json (written by configs/make_published.py) and
// configs/more.json. Each row has keys and values of a config.json, where it was found, and whether it is read. A row
// with a `base` gives its difference from that base.
#include "checkpoint_folder.h"
#include "models/checkpoint/checkpoint.h"
#include "models/families/family.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace gainlens::models {
namespace published_configs_test {

using models::testing::message_of;
using ::testing::HasSubstr;
using ::testing::Not;

struct Row {
  std::string name;
  Json config;
  std::string refused;  ///< part of the message; empty: the configuration is read
};

Json read_table(const std::string& name) {
  return read_json_file(GAINLENS_SOURCE_DIR "/tests/models/configs/" + name, 1 << 20);
}

std::vector<Row> rows_of(const Json& table) {
  std::vector<Row> rows;
  for (const Json& row : table.at("rows")) {
    EXPECT_FALSE(row.at("source").get<std::string>().empty()) << row.at("name");
    Json config = row.contains("base") ? table.at("bases").at(row.at("base").get<std::string>()) : Json::object();
    config.update(row.at("keys"));
    for (const Json& key : row.value("without", Json::array())) config.erase(key.get<std::string>());
    rows.push_back({row.at("name"), std::move(config), row.value("refused", "")});
  }
  return rows;
}

const std::vector<Row>& all_rows() {
  static const std::vector<Row> rows = [] {
    std::vector<Row> all = rows_of(read_table("published.json"));
    for (Row& row : rows_of(read_table("more.json"))) all.push_back(std::move(row));
    return all;
  }();
  return rows;
}

const Row* row_named(const std::string& name) {
  const auto found = std::ranges::find(all_rows(), name, &Row::name);
  return found == all_rows().end() ? nullptr : &*found;
}

void expect_outcome(const Row& row, const Json& config) {
  const std::string message = message_of([&] { parse_decoder_config(config, "config.json"); });
  if (row.refused.empty()) {
    EXPECT_EQ(message, "") << row.name;
  } else {
    EXPECT_THAT(message, HasSubstr(row.refused)) << row.name;
  }
}

TEST(PublishedConfigs, AreReadOrRefusedAsTheTableSays) {
  std::set<std::string> names;
  for (const Row& row : all_rows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    expect_outcome(row, row.config);
  }
}

TEST(PublishedConfigs, EachRefusalHasAReason) {
  int read = 0, refused = 0, other_families = 0;
  const Json table = read_table("published.json");
  for (const Json& row : table.at("rows")) {
    ASSERT_EQ(row.contains("refused"), row.contains("reason")) << row.at("name");
    ++(!row.contains("refused") ? read : row.contains("base") ? refused : other_families);
    EXPECT_NE(row.value("reason", "read"), "") << row.at("name");
  }
  const std::string page = read_text_file(GAINLENS_SOURCE_DIR "/docs/models.md", 1 << 20);
  EXPECT_THAT(page, HasSubstr(fmt::format("holds {} configurations", read + refused + other_families)));
  EXPECT_THAT(page, HasSubstr(fmt::format("{} are read. {} of these families are refused", read, refused)));
  EXPECT_THAT(page, HasSubstr(fmt::format("{} belong to families that are not read", other_families)));
}

TEST(PublishedConfigs, TheFilesThemselvesAgreeWithTheTable) {
  const auto folder = gainlens::testing::shared_data("configs");
  if (!folder) GTEST_SKIP() << "no shared data: configs";
  int configs = 0, read = 0, tokenizers = 0;
  for (const auto& entry : std::filesystem::directory_iterator(*folder)) {
    if (entry.path().extension() != ".json") continue;
    const Json document = read_json_file(entry.path(), 16 << 20);
    const std::string name = entry.path().stem().string();
    if (name.ends_with("tokenizer_config")) {  // given by mistake
      EXPECT_THAT(message_of([&] { parse_decoder_config(document, "here"); }), HasSubstr("is missing")) << name;
      ++tokenizers;
      continue;
    }
    const Row* row = row_named(name);
    ASSERT_NE(row, nullptr) << name << " has no row; run configs/make_published.py";
    expect_outcome(*row, document);
    ++configs;
    if (row->refused.empty()) ++read;
  }
  RecordProperty("configs", configs);
  RecordProperty("read", read);
  RecordProperty("tokenizers", tokenizers);
}

/// Parses and checks that an error is one line that names the file.
void expect_clean(const Json& config, const std::string& what) {
  try {
    const DecoderConfig parsed = parse_decoder_config(config, "config.json");
    EXPECT_GE(parsed.layers, 1) << what;
    EXPECT_GE(parsed.width, 1) << what;
    EXPECT_GE(parsed.heads, 1) << what;
  } catch (const InvalidArgument& error) {
    EXPECT_THAT(error.what(), HasSubstr("config.json: ")) << what;
    EXPECT_THAT(error.what(), Not(HasSubstr("\n"))) << what;
  }
}

TEST(PublishedConfigs, MutantsAreReadOrRefusedInOneLine) {
  const Json values = {nullptr, true, false, -1, 0, 1.5, 1e300, "x", "", Json::array(), {1, "x"}, Json::object()};
  std::map<std::string, int> of_family;
  for (const Row& row : all_rows()) {
    if (!row.refused.empty() || ++of_family[row.config.value("model_type", "none")] > 2) continue;
    for (const auto& [key, kept] : row.config.items()) {
      Json mutant = row.config;
      mutant.erase(key);
      expect_clean(mutant, row.name + " without " + key);
      for (const Json& value : values) {
        mutant[key] = value;
        expect_clean(mutant, fmt::format("{}: {} = {}", row.name, key, value.dump()));
      }
    }
  }
  EXPECT_GE(of_family.size(), 12u);
}

/// The names of checkpoints in Family::examples: what stands before a semicolon, split at commas.
std::vector<std::string> names_in(std::string_view examples) {
  std::vector<std::string> names;
  std::string_view rest = examples.substr(0, examples.find(';'));
  while (true) {
    const auto comma = rest.find(", ");
    names.emplace_back(rest.substr(0, comma));
    if (comma == std::string_view::npos) return names;
    rest.remove_prefix(comma + 2);
  }
}

// docs/models.md shows Family::examples (golden_test.cpp).
TEST(PublishedConfigs, CheckpointsThatThePageListsAreRead) {
  const Json listed = read_table("more.json").at("listed");
  for (const Family& family : families()) {
    ASSERT_TRUE(listed.contains(family.name)) << family.name;
    const Json& rows = listed.at(std::string(family.name));
    const std::vector<std::string> names = names_in(family.examples);
    EXPECT_EQ(names.size(), rows.size()) << family.name;
    for (const std::string& name : names) {
      ASSERT_TRUE(rows.contains(name)) << family.name << ": give the rows of '" << name << "' in more.json";
      for (const Json& row_name : rows.at(name)) {
        const Row* row = row_named(row_name.get<std::string>());
        ASSERT_NE(row, nullptr) << row_name;
        EXPECT_EQ(parse_decoder_config(row->config, "config.json").family, family.name) << row_name;
      }
    }
  }
}

}  // namespace published_configs_test
}  // namespace gainlens::models
