#include "cli/tiny_checkpoint.h"
#include "core/json.h"
#include "support/program.h"
#include "support/refused_call.h"
#include "support/shared_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace gainlens::testing {
namespace look_command_test {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

const std::string models = GAINLENS_SOURCE_DIR "/tests/golden/models/";
const std::string demo = GAINLENS_SOURCE_DIR "/data/demo/gated";

std::vector<std::string> keys_of(const OrderedJson& json) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  return keys;
}

class Look : public ::testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& content) const {
    return write_file(folder_.path() / name, content);
  }
  std::string ids() const { return file("ids.json", "[5, 7, 11, 13, 17, 19, 23, 29]"); }
  ProgramResult of_demo(Words more) const {
    more.insert(more.begin(), {"look", demo});
    return run_gainlens(more);
  }
  ProgramResult of_ids(const Words& more, const std::string& model = models + "llama") const {
    Words words = {"look", model, "--tokens", ids()};
    words.insert(words.end(), more.begin(), more.end());
    return run_gainlens(words);
  }
  OrderedJson json_of(Words more, const std::string& model = models + "llama") const {
    more.emplace_back("--json");
    const ProgramResult result = of_ids(more, model);
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_EQ(std::count(result.out.begin(), result.out.end(), '\n'), 1);
    return OrderedJson::parse(result.out);
  }
  void refused(const Words& more, const std::string& reason) const { expect_refused(of_demo(more), reason); }

  /// A llama of the golden tests with a tokenizer whose every token says what it should not.
  std::string hostile() const {
    const fs::path made = copy_checkpoint(folder_.path());
    Json vocabulary = {{"a", 0}, {"b", 1}};
    for (int id = 2; id < 64; ++id) vocabulary["\x1b[2J<script>\xc2\x9b\x7f\r" + std::to_string(id)] = id;
    const Json tokenizer = {{"added_tokens", Json::array()},
                            {"normalizer", nullptr},
                            {"pre_tokenizer", nullptr},
                            {"post_processor", nullptr},
                            {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", Json::array()}}}};
    write_file(made / "tokenizer.json", tokenizer.dump());
    return made;
  }

  TemporaryFolder folder_;
};

TEST_F(Look, TheLineForProgramsIsToTheLetter) {
  const OrderedJson json = json_of({});
  EXPECT_THAT(keys_of(json), ElementsAre("tokens", "next", "heads"));
  EXPECT_EQ(json.at("tokens").dump(), "[5,7,11,13,17,19,23,29]");
  ASSERT_EQ(json.at("next").size(), 10u);
  double before = 1;
  for (const OrderedJson& next : json.at("next")) {
    EXPECT_THAT(keys_of(next), ElementsAre("id", "logit", "probability"));
    EXPECT_LE(next.at("probability").get<double>(), before);
    before = next.at("probability");
  }
  ASSERT_EQ(json.at("heads").size(), 12u);
  for (std::size_t i = 0; i < 12; ++i) {
    const OrderedJson& head = json.at("heads").at(i);
    EXPECT_THAT(keys_of(head),
                ElementsAre("layer", "head", "n_eff", "kalman_gain", "entropy", "bos_mass", "top_keys", "column_mean"));
    EXPECT_EQ(head.at("layer"), i / 4);
    EXPECT_EQ(head.at("head"), i % 4);
    for (const char* name : {"n_eff", "kalman_gain", "entropy", "bos_mass", "top_keys", "column_mean"})
      EXPECT_EQ(head.at(name).size(), 8u) << name;
    EXPECT_EQ(head.at("n_eff").at(0), 1.0);
    EXPECT_EQ(head.at("top_keys").at(0).dump(), "[[0,1]]");
    double sum = 0;
    for (const OrderedJson& key : head.at("top_keys").at(7)) sum += key.at(1).get<double>();
    EXPECT_NEAR(sum, 1, 1e-5);  // eight keys, eight of them kept
  }
}

TEST_F(Look, EachRequestAddsItsMember) {
  const std::string segments = file("segments.json", R"([{"name": "first", "begin": 0, "end": 3},
    {"name": "<b>\u001b", "begin": 3, "end": 8}])");
  const OrderedJson json =
      json_of({"--head", "1.2", "--query", "5", "--lens", "--answer", "11", "--foil", "30", "--segments", segments,
               "--segment-queries", "2", "--top-keys", "2", "--next", "3"});
  EXPECT_THAT(keys_of(json), ElementsAre("tokens", "next", "heads", "query", "lens", "attribution", "segments"));
  EXPECT_EQ(json.at("next").size(), 3u);
  EXPECT_EQ(json.at("heads").at(0).at("top_keys").at(7).size(), 2u);
  const OrderedJson& query = json.at("query");
  EXPECT_THAT(keys_of(query), ElementsAre("layer", "head", "query", "weights"));
  EXPECT_EQ(query.at("weights").size(), 8u);
  EXPECT_EQ(query.at("weights").at(6), 0.0);
  ASSERT_EQ(json.at("lens").size(), 3u);  // of the query alone
  EXPECT_THAT(keys_of(json.at("lens").at(2)),
              ElementsAre("position", "layer", "entropy", "kl_to_last", "answer", "next"));
  EXPECT_THAT(keys_of(json.at("lens").at(2).at("answer")), ElementsAre("id", "rank", "logit", "probability"));
  EXPECT_EQ(json.at("lens").at(2).at("position"), 5);
  EXPECT_EQ(json.at("lens").at(2).at("next").size(), 3u);
  const OrderedJson& parts = json.at("attribution");
  EXPECT_THAT(keys_of(parts), ElementsAre("answer", "foil", "logit_difference", "before_soft_cap", "sum", "parts"));
  EXPECT_EQ(parts.at("parts").size(), 1u + 3u * 5u);
  EXPECT_NEAR(parts.at("sum").get<double>(), parts.at("logit_difference").get<double>(), 1e-4);
  EXPECT_EQ(json.at("segments").at(1).dump(), R"({"name":"<b>\u001b","begin":3,"end":8})");
  double sum = 0;
  for (const OrderedJson& mass : json.at("heads").at(3).at("segment_mass")) sum += mass.get<double>();
  EXPECT_NEAR(sum, 1, 1e-5);
}

TEST_F(Look, TheLensReadsEveryPosition) {
  const OrderedJson json = json_of({"--lens", "--answer", "11", "--next", "2"});
  EXPECT_THAT(keys_of(json), ElementsAre("tokens", "next", "heads", "lens"));
  const OrderedJson& rows = json.at("lens");
  ASSERT_EQ(rows.size(), 3u * 8u);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows.at(i).at("position"), i / 3);
    EXPECT_EQ(rows.at(i).at("layer"), i % 3);
    EXPECT_EQ(rows.at(i).at("next").size(), 2u);
    EXPECT_EQ(rows.at(i).at("kl_to_last").get<double>() == 0, i % 3 == 2) << i;
    EXPECT_GT(rows.at(i).at("entropy").get<double>(), 0);
  }
  // The last row is the model's own answer.
  EXPECT_EQ(rows.back().at("next").at(0).at("id"), json.at("next").at(0).at("id"));
  EXPECT_NEAR(rows.back().at("next").at(0).at("logit").get<double>(), json.at("next").at(0).at("logit").get<double>(),
              1e-5);
  // One position alone: what is printed, or asked for.
  const OrderedJson one = json_of({"--lens", "--answer", "11", "--query", "4"}).at("lens");
  ASSERT_EQ(one.size(), 3u);
  EXPECT_EQ(one.at(1).at("answer").at("rank"), rows.at(3 * 4 + 1).at("answer").at("rank"));
  EXPECT_NEAR(one.at(1).at("entropy").get<double>(), rows.at(3 * 4 + 1).at("entropy").get<double>(), 1e-5);
  EXPECT_EQ(one.at(1).at("next").size(), 3u);
  const ProgramResult text = of_ids({"--lens", "--query", "4", "--next", "1"});
  EXPECT_THAT(text.out, HasSubstr("lens      the stream after each layer at query 4 token 17, read by"));
  const std::string out = folder_.path() / "page";
  ASSERT_EQ(of_ids({"--lens", "--out", out}).exit_code, 0);
  const std::string csv = read_text_file(out + "/tables/lens-layers.csv");
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 3 * 8);
  // A GGUF file is read by its own output head too.
  const OrderedJson gguf = json_of({"--lens"}, GAINLENS_SOURCE_DIR "/tests/golden/gguf/llama.gguf").at("lens");
  ASSERT_EQ(gguf.size(), rows.size());
}

TEST_F(Look, ASumThatMissesSaysWhy) {
  const auto reason = [&](const std::string& model, const std::string& dtype) {
    const OrderedJson parts =
        json_of({"--answer", "5", "--foil", "9", "--dtype", dtype}, models + model).at("attribution");
    return parts.contains("sum_reason") ? parts.at("sum_reason").get<std::string>() : std::string();
  };
  EXPECT_EQ(reason("llama", "float32"), "");
  EXPECT_EQ(reason("llama", "bfloat16"), "the model computes in bfloat16, which rounds what it adds");
  EXPECT_THAT(reason("gemma2", "float32"),
              AllOf(HasSubstr("the soft cap of the logits is not linear"), Not(HasSubstr("float32"))));
  const ProgramResult text = of_ids({"--answer", "5", "--foil", "9"}, models + "gemma2");
  EXPECT_THAT(text.out, HasSubstr("parts     of the logit of token 5 minus that of token 9, "));
  EXPECT_THAT(text.out, HasSubstr("          not the same: the soft cap"));
}

TEST_F(Look, TokensAreShownAsTheyAre) {
  const ProgramResult result = of_demo({"--prompt", "<|user|> A man", "--answer", "is", "--foil", "are"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(result.error, "");
  EXPECT_THAT(result.out, HasSubstr("tokens    "));
  EXPECT_THAT(result.out, HasSubstr("BOS 1 at position 0"));
  EXPECT_THAT(result.out, HasSubstr("0 '<s>'"));  // no template; the marker is the text that was given
  EXPECT_THAT(result.out, HasSubstr("'<'  "));
  EXPECT_THAT(result.out, HasSubstr("of the logit of '▁is' minus that of '▁are', "));
}

TEST_F(Look, WhereThePromptComesFromChangesNothing) {
  const std::string prompt = "The man in the old house is";
  const ProgramResult given = of_demo({"--prompt", prompt, "--json"});
  EXPECT_EQ(given.exit_code, 0) << given.error;
  EXPECT_EQ(of_demo({"--text", file("prompt.txt", prompt), "--json"}).out, given.out);
  EXPECT_EQ(of_demo({"--batch", file("batch.jsonl", R"({"prompt": ")" + prompt + "\"}\n"), "--json"}).out, given.out);
  const ProgramResult piped =
      run_shell("printf '%s' '" + prompt + "' | " QUOTED_PROGRAM " look " + shell_word(demo) + " --text - --json", "");
  EXPECT_EQ(piped.exit_code, 0) << piped.error;
  EXPECT_EQ(piped.out, given.out);
  const ProgramResult line = of_demo({"--text", file("line.txt", prompt + "\n"), "--json"});
  EXPECT_NE(line.out, given.out);
  EXPECT_THAT(line.error, HasSubstr("the prompt ends in a line end"));
  EXPECT_EQ(of_demo({"--prompt", prompt, "--json", "--stream-weights"}).out, given.out);
}

TEST_F(Look, OneTokenIsEnough) {
  for (const char* bos : {"always", "never"}) {
    const ProgramResult result = of_demo({"--prompt", "A", "--bos", bos, "--head", "0.0", "--lens"});
    EXPECT_EQ(result.exit_code, 0) << result.error;
    EXPECT_THAT(result.out,
                HasSubstr(std::string(bos) == "never" ? "tokens    1 token; no BOS" : "tokens    2 tokens; BOS 1"));
  }
  const std::string alone = file("one.json", "[1]");
  const ProgramResult result = run_gainlens({"look", demo, "--tokens", alone, "--head", "3.1"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.out, HasSubstr("head 3.1 at query 0 token 1: the weight of each key (a full bar is 1.000)"));
}

TEST_F(Look, ABatchRunsAllOrNothing) {
  const std::string good = R"({"prompt": "The man"})";
  const ProgramResult two =
      of_demo({"--batch", file("two.jsonl", good + "\n" + R"({"prompt": "A dog is"})"), "--json"});
  EXPECT_EQ(two.exit_code, 0) << two.error;
  EXPECT_EQ(std::count(two.out.begin(), two.out.end(), '\n'), 2);
  const auto broken = [&](const std::string& line, const std::string& reason, const Words& more = {}) {
    Words words = {"--batch", file("broken.jsonl", good + "\n" + line + "\n" + good + "\n"), "--json"};
    words.insert(words.end(), more.begin(), more.end());
    refused(words, reason);
  };
  broken("{", "broken.jsonl: line 2: not valid JSON at byte 2: syntax error");
  broken("", "broken.jsonl: line 2: is blank");
  broken("[]", "broken.jsonl: line 2: must be {\"prompt\": \"..\"}");
  broken(R"({"prompt": 1})", "line 2: must be");
  broken(R"({"prompt": "a", "b": 1})", "line 2: must be");
  broken(R"({"prompt": ""})", "line 2: the prompt is empty");
  broken("{\"prompt\": \"\xff\"}", "line 2");
  broken(R"({"prompt": "A"})", "line 2: --query: position 2; the prompt has positions 0 to 1",
         {"--query", "2", "--lens"});
  std::string longest;
  for (int i = 0; i < 5000; ++i) longest += "A ";
  broken(R"({"prompt": ")" + longest + "\"}", "line 2: the prompt has ");
  refused({"--batch", file("empty.jsonl", "")}, "empty.jsonl has no line");
  refused({"--batch", folder_.path() / "none"}, "no such file");
}

TEST_F(Look, WritesAPage) {
  const std::string out = folder_.path() / "page";
  const ProgramResult one =
      run_gainlens({"look", demo + "/", "--prompt", "The man", "--lens", "--head", "2.0", "--out", out});
  ASSERT_EQ(one.exit_code, 0) << one.error;
  EXPECT_THAT(read_text_file(out + "/report.html"), HasSubstr("gated: one forward pass"));
  for (const char* table : {"tokens", "next", "heads", "keys", "query", "lens"})
    EXPECT_TRUE(std::filesystem::exists(out + "/tables/" + table + ".csv")) << table;
  const std::string batch = file("pages.jsonl", "{\"prompt\": \"A\"}\n{\"prompt\": \"B\"}\n");
  const std::string pages = folder_.path() / "pages";
  EXPECT_EQ(of_demo({"--batch", batch, "--out", pages}).exit_code, 0);
  EXPECT_TRUE(std::filesystem::exists(pages + "/prompt-2/report.html"));
  // What others have written stays.
  const std::string run = folder_.path() / "run";
  ASSERT_EQ(run_gainlens({"intervene", demo, "--text", file("text.txt", std::string(400, 'a')), "--lengths", "8",
                          "--samples", "1", "--set", "blocks.0.attn.hook_z[head=1]=zero", "--out", run, "--quiet"})
                .exit_code,
            0);
  refused({"--prompt", "A", "--out", run}, "is the folder of a run; choose another folder");
  refused({"--prompt", "A", "--out", batch}, "pages.jsonl");
}

TEST_F(Look, WrongRequestsGetOneLine) {
  refused({}, "there is no prompt; give --prompt");
  refused({"--prompt", ""}, "--prompt: is empty");
  refused({"--prompt", "a\xff"}, "--prompt: not UTF-8 at byte 1");
  refused({"--text", file("empty.txt", "")}, "empty.txt");
  refused({"--text", file("empty.txt", ""), "--bos", "always"}, "empty.txt");
  refused({"--tokens", file("none.json", "[]")}, "none.json");
  refused({"--tokens", file("large.json", "[99999999]")}, "large.json");
  refused({"--prompt", "A", "--text", ids()}, "--prompt: there is a file too (--text)");
  refused({"--prompt", "A", "--tokens", ids()}, "--prompt: there is a file too (--tokens)");
  refused({"--prompt", "A", "--batch", ids()}, "--batch: there is another prompt too");
  refused({"--prompt", "A", "--query", "2"}, "--query: position 2; the prompt has positions 0 to 1");
  refused({"--prompt", "A", "--query", "-1"}, "--query: position -1");
  for (const char* head : {"2", "2.", ".2", "2.0x", "a.b", "2.0.1", "99999999999999999999.0"})
    refused({"--prompt", "A", "--head", head}, std::string("--head: '") + head + "'; must be LAYER.HEAD");
  refused({"--prompt", "A", "--head", "-1.0"}, "--head: layer -1; the model has layers 0 to 9");
  refused({"--prompt", "A", "--head", "0.6"}, "--head: head 6; the model has heads 0 to 5");
  refused({"--prompt", "A", "--top-keys", "0"}, "--top-keys: 0; must be 1 to 64");
  refused({"--prompt", "A", "--top-keys", "65"}, "--top-keys: 65; must be 1 to 64");
  refused({"--prompt", "A", "--next", "0"}, "--next: 0; must be at least 1");
  refused({"--prompt", "A", "--answer", "is"}, "--foil: is missing");
  refused({"--prompt", "A", "--query", "0", "--json"}, "--query: --json has the numbers of every query");
  refused({"--prompt", "A", "--foil", "is"}, "--answer: is missing");
  refused({"--prompt", "A", "--answer", "the house", "--foil", "is"}, "--answer: 'the house' is ");
  refused({"--prompt", "A", "--answer", "is", "--foil", "is"}, "--foil: is the token of --answer");
  refused({"--prompt", "A", "--segment-queries", "2"}, "--segment-queries: belongs to --segments");
  refused({"--prompt", "A", "--dtype", "int4"}, "--dtype: 'int4'");
  const std::string gap = file("gap.json", R"([{"name": "a", "begin": 1, "end": 2}])");
  refused({"--prompt", "A", "--segments", gap}, "gap.json: 'a' begins at token 1, which leaves a gap");
  refused({"--prompt", "A", "--segments", gap, "--segment-queries", "0"}, "--segment-queries: 0");
  refused({"--batch", ids(), "--segments", gap}, "--segments: are of one prompt");
  expect_refused(of_ids({}, models + "none"), "none");
  expect_refused(of_ids({"--head", "0.0"}, models + "qwen3-next"), "--head: layer 0 has linear attention");
  expect_refused(of_ids({"--answer", "is", "--foil", "3"}), "with token ids there is no tokenizer; give an id");
  const Words text = {"look", models + "llama", "--prompt", "A"};
  expect_refused(run_gainlens(text), "--tokens");
}

TEST_F(Look, APromptBeyondItsPositionsIsRefused) {
  const std::string many = write_ids(folder_.path(), 129);
  const Words words = {"look", tiny_checkpoint, "--tokens", many};
  expect_refused(run_gainlens(words), "the prompt has 129 tokens, and the model was made for 128");
  Words allowed = words;
  allowed.emplace_back("--allow-extrapolation");
  const ProgramResult result = run_gainlens(allowed);
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.out, HasSubstr("the model was made for 128 tokens: all that follows is beyond"));
}

TEST_F(Look, TextsOfTokensAreNeverSentRaw) {
  const std::string model = hostile(), segments = file("segments.json", R"([{"name": "\u001b[2J\u009b", "begin": 0,
    "end": 2}])");
  const ProgramResult result = run_gainlens({"look", model, "--prompt", "ab", "--bos", "never", "--lens", "--head",
                                             "1.1", "--segments", segments, "--answer", "id:7", "--foil", "id:8"});
  EXPECT_EQ(result.exit_code, 0) << result.error;
  EXPECT_THAT(result.out, AllOf(HasSubstr("'\\x1b[2J<script>"), HasSubstr("of the logit of '\\x1b[2J")));
  for (const char* raw : {"\x1b", "\xc2\x9b", "\x7f", "\r"}) EXPECT_THAT(result.out, Not(HasSubstr(raw)));
}

TEST_F(Look, EveryKindOfModel) {
  for (const char* model : {"gpt2", "gemma3", "gpt-oss", "qwen3-next", "deepseek-v3"})
    EXPECT_THAT(keys_of(json_of({"--lens", "--answer", "5", "--foil", "6"}, models + model)),
                ElementsAre("tokens", "next", "heads", "lens", "attribution"))
        << model;
  const std::string gguf = GAINLENS_SOURCE_DIR "/tests/golden/gguf/llama.gguf";
  EXPECT_EQ(json_of({}, gguf).at("heads").size(), 12u);
  EXPECT_EQ(json_of({"--dtype", "bfloat16"}).at("heads").size(), 12u);
}

}  // namespace look_command_test
}  // namespace gainlens::testing
