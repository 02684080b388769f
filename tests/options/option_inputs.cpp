#include "options/option_inputs.h"

#include "cli/tiny_checkpoint.h"
#include "core/json.h"
#include "language/language_testing.h"
#include "support/file_bytes.h"
#include "support/program.h"
#include "support/shared_data.h"
#include "support/tiny_training.h"

#include <filesystem>
#include <map>
#include <regex>
#include <stdexcept>

namespace gainlens::testing {
namespace {

namespace fs = std::filesystem;

const fs::path& folder() {
  static const TemporaryFolder made;
  return made.path();
}

/// The folder that a call makes.
std::string made_by(const std::string& name, Words words) {
  const std::string path = folder() / name;
  if (fs::exists(path)) return path;
  words.insert(words.end(), {"--out", path, "--quiet", "--threads", "1"});
  const ProgramResult result = run_gainlens(words);
  if (result.exit_code != 0) throw std::runtime_error(result.error);
  return path;
}

/// Users with items, times and a third column each, some of them more than once and at the same time.
std::string table(char separator, bool header) {
  const std::string comma(1, separator);
  std::string text = header ? "user_id,item_id,timestamp,other_user,other_item,other_time\n" : "";
  for (char& c : text) c = c == ',' ? separator : c;
  for (int user = 0; user < 60; ++user) {
    for (int i = 0; i < 6 + user % 9; ++i) {
      const int item = i == 4 ? tiny_item(user, 1) : user == 7 && i == 2 ? 900 : tiny_item(user, i);
      text += "u" + std::to_string(user) + comma + std::to_string(item) + comma +
              std::to_string(1000 * (i / 2) + user * 13) + comma + "v" + std::to_string(user % 20) + comma +
              std::to_string((item * 3) % 40) + comma + std::to_string(5000 - 7 * i) + "\n";
    }
  }
  return text;
}

}  // namespace

std::string input_file(const std::string& name, const std::string& content) {
  return write_file(folder() / name, content);
}

std::string token_ids(int step) {
  std::string text = "[";
  for (int i = 0; i < 200; ++i) text += (i == 0 ? "" : ",") + std::to_string(3 + (i * step + i * i / 7) % 58);
  return input_file("ids-" + std::to_string(step) + ".json", text + "]");
}

std::string some_text(int number) {
  return input_file("text-" + std::to_string(number) + ".txt", made_up_text(60, static_cast<std::uint64_t>(number)));
}

std::string odd_checkpoint() {
  const fs::path path = copy_checkpoint(folder());
  Json config = Json::parse(bytes_of(path / "config.json"));
  config["logit_scale"] = 2;
  write_file(path / "config.json", config.dump());
  return path;
}

std::string histories() {
  return input_file("items.txt", tiny_histories(5, 9) + "again 3 7 3 11 7 5\n");
}

std::string timed_interactions() {
  return input_file("interactions.csv", table(',', true));
}

std::string swept_run(int number) {
  return made_by("swept-" + std::to_string(number), {"sweep", tiny_model, "--tokens",
                                                     token_ids(number == 1   ? 13
                                                               : number == 2 ? 29
                                                                             : 31),
                                                     "--lengths", "32,64,128", "--samples", "1"});
}

std::string swept_odd_run() {
  return made_by("swept-odd", {"sweep", odd_checkpoint(), "--tokens", token_ids(29), "--lengths", "32", "--samples",
                               "1", "--ignore-config-key", "logit_scale"});
}

std::string swept_demo_run() {
  return made_by("swept-demo", {"sweep", demo_model, "--text", some_text(3), "--lengths", "32,64", "--samples", "1"});
}

std::string recommend_run() {
  Words words = tiny_training(histories(), "", 2, {"--arm", "plain,bft,popularity", "--seeds", "2", "--warm-up", "1"});
  return made_by("trained", with_words(words, {"!--out", "!--threads"}));
}

std::string recommend_run_of_other_seeds() {
  const Words words = tiny_training(histories(), "", 1, {"--seeds", "2", "--seed", "5"});
  return made_by("seeds", with_words(words, {"!--out", "!--threads"}));
}

std::string recommend_run_of_other_data() {
  const std::string data = input_file("other-items.txt", tiny_histories(6, 7));
  const Words words = tiny_training(data, "", 1, {"--arm", "plain,bft", "--seeds", "2", "--warm-up", "1"});
  return made_by("other", with_words(words, {"!--out", "!--threads"}));
}

std::string grid_run() {
  Words words = tiny_training(histories(), "", 2,
                              {"--arm", "plain,bft", "--seeds", "2", "--warm-up", "1", "--grid", "dropout=0.3,0.4"});
  return made_by("grid", with_words(words, {"!--out", "!--threads"}));
}

std::vector<OptionRow> interaction_rows(const Words& also) {
  const auto of = [&](const std::string& data, const Words& more = {}) {
    Words words = with_words(also, {"--data", data});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const std::string csv = timed_interactions();
  const std::string bare = input_file("bare.csv", table(',', false));
  const std::string other = input_file("semicolons.csv", table(';', true));
  const std::string quoted = input_file(
      "quoted.csv", std::regex_replace(table(',', true), std::regex("\\bu(\\d+),(\\d*[02468]),"), "\"u$1\",$2,"));
  return {
      {"--ties", {"item"}, of(csv)},
      {"--min-item-count", {"3"}, of(csv)},
      {"--duplicates", {"first"}, of(csv)},
      {"--split", {"temporal:0.7"}, of(csv)},
      {"--user-column", {"other_user"}, of(csv)},
      {"--item-column", {"other_item"}, of(csv)},
      {"--time-column", {"other_time"}, of(csv)},
      {"--delimiter", {"semicolon"}, of(other)},
      {"--quotes", {"none"}, of(quoted)},
      {"--no-header", {}, of(bare, {"--user-column", "1", "--item-column", "2", "--time-column", "3"})},
  };
}

std::vector<OptionRow> refused_interaction_rows(const Words& also) {
  std::vector<OptionRow> rows;
  for (const auto& [option, value] : std::map<std::string, Words>{{"--ties", {"item"}},
                                                                  {"--min-item-count", {"8"}},
                                                                  {"--duplicates", {"first"}},
                                                                  {"--split", {"temporal:0.7"}},
                                                                  {"--user-column", {"user"}},
                                                                  {"--item-column", {"item"}},
                                                                  {"--time-column", {"time"}},
                                                                  {"--delimiter", {"semicolon"}},
                                                                  {"--quotes", {"none"}},
                                                                  {"--no-header", {}}})
    rows.push_back({option, value, also, any_refusal});
  return rows;
}

}  // namespace gainlens::testing
