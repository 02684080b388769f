#include "cli/tiny_checkpoint.h"
#include "core/json.h"
#include "runfile/run_reader.h"
#include "support/program.h"
#include "support/refused_call.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace gainlens::testing {
namespace generate_command_test {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;
using Words = std::vector<std::string>;

const std::string demo = GAINLENS_SOURCE_DIR "/data/demo/gated";

class Generate : public ::testing::Test {
 protected:
  std::string ids(const std::string& content = "[5, 7, 11, 13]") const {
    return write_file(folder_.path() / "ids.json", content);
  }
  ProgramResult of_ids(const Words& more, const std::string& model = tiny_checkpoint) const {
    Words words = {"generate", model, "--tokens", ids()};
    words.insert(words.end(), more.begin(), more.end());
    return run_gainlens(words);
  }
  OrderedJson json_of(Words more) const {
    more.emplace_back("--json");
    const ProgramResult result = of_ids(more);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 1);
    return OrderedJson::parse(result.out);
  }

  TemporaryFolder folder_;
};

TEST_F(Generate, TheLineForProgramsIsToTheLetter) {
  const OrderedJson json = json_of({"--max-new", "6", "--greedy"});
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  EXPECT_THAT(keys, ElementsAre("tokens", "logprobs"));
  ASSERT_EQ(json.at("tokens").size(), 6u);
  ASSERT_EQ(json.at("logprobs").size(), 6u);
  for (const OrderedJson& logprob : json.at("logprobs")) EXPECT_LT(logprob.get<double>(), 0);
  // The first token is what `look` calls the most likely one.
  const ProgramResult look = run_gainlens({"look", tiny_checkpoint, "--tokens", ids(), "--json", "--next", "1"});
  EXPECT_EQ(json.at("tokens").at(0), OrderedJson::parse(look.out).at("next").at(0).at("id"));
  EXPECT_EQ(json_of({"--max-new", "6"}), json) << "greedy is the default";
  EXPECT_EQ(json_of({"--max-new", "6", "--stream-weights"}), json);
}

TEST_F(Generate, DrawsFollowTheSeed) {
  const Words drawn = {"--max-new", "20", "--temperature", "3", "--seed", "4", "--ignore-eos"};
  const OrderedJson json = json_of(drawn);
  EXPECT_EQ(json_of(drawn), json);
  EXPECT_NE(json_of({"--max-new", "20", "--temperature", "3", "--seed", "5", "--ignore-eos"}), json);
  EXPECT_EQ(json_of({"--max-new", "6", "--top-p", "1e-6"}), json_of({"--max-new", "6"}));
}

TEST_F(Generate, ATextEndsBehindTheTokenThatTheCheckpointNames) {
  const std::string all = json_of({"--max-new", "8", "--ignore-eos"}).at("tokens").dump();
  const std::filesystem::path made = copy_checkpoint(folder_.path());
  write_file(made / "generation_config.json", "{\"eos_token_id\": " + OrderedJson::parse(all).at(3).dump() + "}");
  const ProgramResult ended = of_ids({"--max-new", "8", "--json"}, made);
  EXPECT_EQ(ended.exit_code, 0) << ended.error;
  EXPECT_EQ(OrderedJson::parse(ended.out).at("tokens").size(), 4u);
  EXPECT_THAT(ended.error, HasSubstr("(eos_token_id of generation_config.json) would end the text"));
  const ProgramResult ignored = of_ids({"--max-new", "8", "--json", "--ignore-eos"}, made);
  EXPECT_EQ(OrderedJson::parse(ignored.out).at("tokens").dump(), all);
  EXPECT_THAT(ignored.error, HasSubstr("does not end the text (--ignore-eos)"));
  write_file(made / "generation_config.json", R"({"eos_token_id": "</s>"})");
  expect_refused(of_ids({"--max-new", "8"}, made), "must be an id, or a list of ids");
}

TEST_F(Generate, PromptsInTextGiveText) {
  const Words prompt = {"generate", demo, "--prompt", "The first game of", "--max-new", "12"};
  const ProgramResult found = run_gainlens(prompt);
  EXPECT_EQ(found.exit_code, 0) << found.error;
  EXPECT_EQ(found.out, " the Broncos and the Broncos.\n");  // docs/generate.md
  EXPECT_THAT(found.error, AllOf(HasSubstr("token 2 (eos_token_id of config.json) would end the text"),
                                 HasSubstr("the prompt of 5 tokens and the first new token in "),
                                 HasSubstr(" tokens per second\n")));
  Words quiet = prompt;
  quiet.emplace_back("--quiet");
  EXPECT_EQ(run_gainlens(quiet).error, "");
  const std::string file = write_file(folder_.path() / "prompt.txt", "The first game of");
  EXPECT_EQ(run_gainlens({"generate", demo, "--text", file, "--max-new", "12"}).out, found.out);
  EXPECT_THAT(of_ids({"--max-new", "3"}).out, MatchesRegex("[0-9]+ [0-9]+ [0-9]+\n"));  // there is no tokenizer
  EXPECT_THAT(of_ids({"--max-new", "1"}).error, AllOf(HasSubstr("no further token"), Not(HasSubstr("per second"))));
}

/// Every head of every new token, as a sweep has it at this position of the finished text.
TEST_F(Generate, StatisticsAreThoseOfASweep) {
  const OrderedJson plain = json_of({"--max-new", "6"}), json = json_of({"--max-new", "6", "--statistics"});
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  EXPECT_THAT(keys, ElementsAre("tokens", "logprobs", "statistics"));
  EXPECT_EQ(json.at("tokens"), plain.at("tokens"));
  EXPECT_EQ(json.at("logprobs"), plain.at("logprobs"));
  std::string text = "[5,7,11,13";
  for (std::size_t i = 0; i < 5; ++i) text += "," + json.at("tokens").at(i).dump();
  const std::string out = folder_.path() / "sweep";
  const ProgramResult swept =
      run_gainlens({"sweep", tiny_checkpoint, "--tokens", write_file(folder_.path() / "text.json", text + "]"),
                    "--lengths", "9", "--samples", "1", "--per-query", "--bos", "never", "--out", out, "--quiet"});
  ASSERT_EQ(swept.exit_code, 0) << swept.error;
  const runfile::RunReader run = runfile::RunReader::open(out);
  const OrderedJson& heads = json.at("statistics");
  for (const char* name : {"n_eff", "kalman_gain", "entropy", "bos_mass"}) {
    const runfile::Array found = run.read(std::string("queries/9/") + name);  // [chunk, layer, head, query]
    ASSERT_EQ(found.values.size(), heads.size() * 9) << name;
    for (std::size_t head = 0; head < heads.size(); ++head) {
      ASSERT_EQ(heads.at(head).at(name).size(), 6u);
      for (std::size_t i = 0; i < 6; ++i) {
        EXPECT_NEAR(heads.at(head).at(name).at(i).get<double>(), found.values[head * 9 + 3 + i], 1e-5)
            << name << " of head " << head << ", token " << i;
      }
    }
  }
}

TEST_F(Generate, StatisticsAreATableForPeople) {
  const ProgramResult found =
      run_gainlens({"generate", demo, "--prompt", "The first game of", "--max-new", "4", "--statistics", "--quiet"});
  EXPECT_EQ(found.exit_code, 0) << found.error;
  // docs/generate.md shows it.
  const std::string page = read_text_file(GAINLENS_SOURCE_DIR "/docs/generate.md", 1 << 20);
  EXPECT_THAT(page, HasSubstr("--max-new 4 --statistics --quiet\n" + found.out));
}

/// The text comes token by token: the program ends when its reader has gone, long before a million tokens.
TEST_F(Generate, PrintsWhileItGenerates) {
  const ProgramResult found =
      run_shell("{ timeout 100 " QUOTED_PROGRAM " generate " + shell_word(tiny_checkpoint) + " --tokens " + ids() +
                    " --max-new 1000000 --ignore-eos --allow-extrapolation --quiet || echo \"code $?\" >&2; } | head "
                    "-c 3 || true",
                folder_.path());
  EXPECT_THAT(found.error, Not(HasSubstr("code 124")));
  EXPECT_EQ(found.out, of_ids({"--max-new", "3", "--ignore-eos"}).out.substr(0, 3));
}

TEST_F(Generate, BadInputIsRefusedInOneLine) {
  const auto refused = [&](const Words& more, const std::string& reason) { expect_refused(of_ids(more), reason); };
  refused({}, "--max-new: is missing");
  refused({"--max-new", "0"}, "--max-new: 0; must be at least 1");
  refused({"--max-new", "-2"}, "--max-new: -2");
  refused({"--max-new", "125"}, "the prompt has 4 tokens and --max-new asks for 125 more; the model was made for 128");
  refused({"--max-new", "9223372036854775807"}, "or give --allow-extrapolation");
  refused({"--max-new", "2", "--temperature", "0"}, "--temperature: 0; must be a finite number above 0");
  refused({"--max-new", "2", "--top-p", "1.5"}, "--top-p: 1.5");
  refused({"--max-new", "2", "--greedy", "--temperature", "1"}, "--greedy: takes the most likely token");
  refused({"--max-new", "2", "--prompt", "x"}, "--prompt: there is a file too");
  refused({"--max-new", "2", "--dtype", "int8"}, "--dtype");
  expect_refused(run_gainlens({"generate", tiny_checkpoint, "--max-new", "2"}), "there is no prompt; give --prompt");
  expect_refused(run_gainlens({"generate", demo, "--prompt", "", "--bos", "never", "--max-new", "2"}),
                 "--prompt: is empty; give it a value");
  for (const auto& [content, reason] : std::vector<std::pair<std::string, std::string>>{
           {"[]", ""}, {"[64]", "64"}, {"[-1]", ""}, {"[1.5]", ""}, {"{}", ""}, {"[1", ""}}) {
    expect_refused(run_gainlens({"generate", tiny_checkpoint, "--tokens", ids(content), "--max-new", "2"}), reason);
  }
  EXPECT_EQ(of_ids({"--max-new", "125", "--allow-extrapolation", "--ignore-eos"}).exit_code, 0);
}

}  // namespace generate_command_test
}  // namespace gainlens::testing
