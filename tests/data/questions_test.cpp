#include "data/questions.h"
#include "core/error.h"
#include "data/question_split.h"
#include "support/shared_data.h"
#include "support/text_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace gainlens::data {
namespace questions_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using testing::write_file;

class Questions : public ::testing::Test {
 protected:
  std::filesystem::path file(const std::string& content) const {
    return write_file(folder_.path() / "questions", content);
  }
  template <typename Read>
  void refused(const Read& read, const std::string& content, const std::string& reason) const {
    EXPECT_THAT([&] { read(file(content)); }, ThrowsMessage<InvalidArgument>(HasSubstr(reason))) << content;
  }
  testing::TemporaryFolder folder_;
};

std::string squad(const std::string& qas) {
  return R"({"version": "1.1", "data": [{"title": "T", "paragraphs": [{"context": "The cat sat.", "qas": [)" + qas +
         "]}]}]}";
}

TEST_F(Questions, OfSquad) {
  const auto found = read_squad(file(squad(
      R"({"id": "x", "question": "Who sat?", "answers": [{"answer_start": 4, "text": "cat"},
          {"answer_start": 0, "text": "The cat"}]}, {"id": "y", "question": "Q", "answers": [{"text": "sat"}]})")));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].id, "x");
  EXPECT_EQ(found[0].group, "T");
  EXPECT_EQ(found[0].prompt, "Context: The cat sat.\nQuestion: Who sat?\nAnswer:");
  EXPECT_THAT(found[0].answers, ElementsAre("cat", "The cat"));
  refused(read_squad, squad(""), "has no question");
  refused(read_squad, squad(R"({"id": "x", "question": "Q", "answers": []})"), "question 'x': has no answer");
  refused(read_squad, squad(R"({"id": "x", "question": "Q", "answers": [{"text": "dog"}]})"),
          "the answer 'dog' does not stand in its context");
  refused(read_squad, squad(R"({"id": "x", "question": "Q", "answers": [{"text": " "}]})"), "an answer is blank");
  refused(read_squad, squad(R"({"question": "Q", "answers": []})"), "has no text 'id'");
  const std::string one = R"({"id": "x", "question": "Q", "answers": [{"text": "sat"}]})";
  refused(read_squad, squad(one + "," + one), "the id 'x' is there twice");
  for (const char* broken : {"{}", "[]", "{", R"({"data": 1})", R"({"data": [1]})", R"({"data": [{"title": "T"}]})"})
    refused(read_squad, broken, "");
}

TEST_F(Questions, OfJsonLines) {
  const auto found =
      read_prompts_and_answers(file("{\"prompt\": \"1+1=\", \"answers\": [\"2\"]}\n"
                                    "{\"prompt\": \"p\", \"answers\": [\"a\", \"b\"], \"id\": \"k\", "
                                    "\"group\": \"g\"}\n"));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].id, "1");
  EXPECT_EQ(found[0].group, "1");
  EXPECT_EQ(found[0].question, "1+1=");
  EXPECT_EQ(found[1].id, "k");
  EXPECT_EQ(found[1].group, "g");
  EXPECT_THAT(found[1].answers, ElementsAre("a", "b"));
  const auto read = read_prompts_and_answers;
  refused(read, "{\"prompt\": \"p\", \"answers\": [\"a\"]}\n\n", "line 2: is blank");
  refused(read, R"({"prompt": "p", "answers": []})", "line 1: has no answer");
  refused(read, R"({"prompt": "p", "answers": [" "]})", "an answer is not a text, or blank");
  refused(read, R"({"prompt": " ", "answers": ["a"]})", "the prompt is blank");
  refused(read, R"({"prompt": "p", "answers": ["a"], "anwser": 1})", "has the member 'anwser'");
  refused(read, R"(["p"])", "is not a JSON object");
  refused(read, "{\"prompt\": \"p\", \"answers\": [\"a\"], \"id\": \"2\"}\n{\"prompt\": \"p\", \"answers\": [\"a\"]}\n",
          "line 2: the id '2' is there twice");
}

std::string open_line(const std::string& question, const std::string& more = "") {
  return R"({"question": ")" + question + R"(", "answers": ["A)" + question + R"("], "ctxs": [{"title": "t)" +
         question + R"(", "text": "gold of )" + question + R"(: A)" + question +
         R"(", "hasanswer": true, "isgold": true})" + more + "]}\n";
}

TEST_F(Questions, OfNqOpenWithAPool) {
  std::string content;
  for (const char* name : {"q1", "q2", "q3", "q4", "q5", "q6"}) content += open_line(name);
  const auto questions = read_nq_open(file(content));
  ASSERT_EQ(questions.size(), 6u);
  EXPECT_EQ(questions[0].gold.title, "tq1");
  const OpenPrompts made = open_prompts(questions, 3, 5);
  EXPECT_EQ(made.distractors, Distractors::pool);
  for (const Question& question : made.questions) {
    EXPECT_THAT(question.prompt, HasSubstr("gold of " + question.question));
    EXPECT_THAT(question.prompt, HasSubstr("\n\nQuestion: " + question.question + "\nAnswer:"));
    EXPECT_THAT(question.prompt, HasSubstr("Document [3](Title: t"));
    EXPECT_EQ(question.prompt.find("Document [4]"), std::string::npos);
  }
  EXPECT_EQ(open_prompts(questions, 3, 5).questions[2].prompt, made.questions[2].prompt);
  // The gold passage of some question stands elsewhere than that of another.
  std::set<std::size_t> places;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::string prompt = open_prompts(questions, 3, seed).questions[0].prompt;
    const std::string before = prompt.substr(0, prompt.find("gold of q1"));
    places.insert(static_cast<std::size_t>(std::count(before.begin(), before.end(), '[')));
  }
  EXPECT_THAT(places, ElementsAre(1u, 2u, 3u));
  EXPECT_THAT([&] { open_prompts(questions, 7, 5); }, ThrowsMessage<InvalidArgument>(HasSubstr("fewer than 6")));
  EXPECT_THROW(open_prompts(questions, 0, 5), InvalidArgument);
  EXPECT_EQ(open_prompts(questions, 1, 5).distractors, Distractors::retrieved);  // none is needed
}

TEST_F(Questions, OfNqOpenWithRetrievedPassages) {
  const auto passage = [](const std::string& text, bool answer) {
    return R"(, {"title": "r", "text": ")" + text + R"(", "hasanswer": )" + (answer ? "true" : "false") +
           R"(, "isgold": false})";
  };
  const auto questions =
      read_nq_open(file(open_line("q", passage("first", false) + passage("Aq too", true) + passage("second", false))));
  EXPECT_EQ(questions[0].distractors.size(), 2u);
  const OpenPrompts made = open_prompts(questions, 2, 1);
  EXPECT_EQ(made.distractors, Distractors::retrieved);
  EXPECT_THAT(made.questions[0].prompt, HasSubstr("first"));
  EXPECT_EQ(made.questions[0].prompt.find("second"), std::string::npos);
  EXPECT_EQ(made.questions[0].prompt.find("Aq too"), std::string::npos);
  refused(read_nq_open, R"({"question": "q", "answers": ["a"], "ctxs": []})", "has no gold passage");
  refused(read_nq_open, R"({"question": "q", "answers": ["a"]})", "has no list 'ctxs'");
  refused(read_nq_open, R"({"question": "q", "answers": ["a"], "ctxs": [{"title": "t", "text": "x"}]})",
          "a passage has no 'isgold'");
}

/// `count` questions, of groups of three.
std::vector<Question> numbered(int count, const std::string& prefix = "") {
  std::vector<Question> all;
  for (int i = 0; i < count; ++i) {
    const std::string name = prefix + std::to_string(i);
    all.push_back({name, prefix + "g" + std::to_string(i / 3), "q" + name, "p" + name, {"a"}});
  }
  return all;
}

std::set<std::string> groups_of(const std::vector<Question>& questions) {
  std::set<std::string> groups;
  for (const Question& question : questions) groups.insert(question.group);
  return groups;
}

TEST(QuestionSplits, OfOneFileShareNoGroupAndNoText) {
  std::vector<Question> all = numbered(60);
  for (const int i : {0, 20, 40, 59}) all[static_cast<std::size_t>(i)].question = "the same everywhere";
  const QuestionSplit split = split_questions(all, {.training = 10, .validation = 7, .test = 20}, 3);
  EXPECT_EQ(split.training.size(), 10u);
  EXPECT_EQ(split.validation.size(), 7u);
  EXPECT_EQ(split.test.size(), 20u);
  EXPECT_EQ(split.selection_rows, 0);
  std::set<std::string> groups, texts;
  for (const auto* part : {&split.training, &split.validation, &split.test}) {
    for (const std::string& group : groups_of(*part)) EXPECT_TRUE(groups.insert(group).second) << group;
    std::set<std::string> own;
    for (const Question& question : *part) own.insert(question.question);
    for (const std::string& text : own) EXPECT_TRUE(texts.insert(text).second) << text;
  }
  const QuestionSplit again = split_questions(all, {.training = 10, .validation = 7}, 3);
  EXPECT_EQ(again.training[4].id, split.training[4].id);
  EXPECT_GT(again.test.size(), 30u);
  EXPECT_NE(split_questions(all, {.training = 10, .validation = 7}, 4).training[4].id, split.training[4].id);
  EXPECT_THAT([&] { split_questions(all, {.training = 50, .validation = 20}, 3); },
              ThrowsMessage<InvalidArgument>(HasSubstr("--validation-rows: 20 questions; only ")));
  EXPECT_THROW(split_questions(all, {.training = 0, .validation = 1}, 3), InvalidArgument);
  EXPECT_THROW(split_questions(all, {.training = 60, .validation = 1}, 3), InvalidArgument);
}

TEST(QuestionSplits, DefaultsFitIntoASmallFile) {
  const auto sizes = [](const AskedSizes& asked, std::int64_t questions, std::optional<std::int64_t> of_test = {}) {
    const SplitSizes found = fitted_sizes(asked, questions, of_test);
    return std::vector<std::int64_t>{found.training, found.validation, found.test};
  };
  EXPECT_THAT(sizes({}, 5000), ElementsAre(1000, 1000, 0));
  EXPECT_THAT(sizes({}, 2001), ElementsAre(1000, 1000, 0));
  EXPECT_THAT(sizes({}, 2000), ElementsAre(1000, 400, 0));
  EXPECT_THAT(sizes({}, 200), ElementsAre(120, 40, 0));
  EXPECT_THAT(sizes({.test = 50}, 200), ElementsAre(112, 37, 50));
  EXPECT_THAT(sizes({.training = 150}, 200), ElementsAre(150, 25, 0));
  EXPECT_THAT(sizes({.training = 150, .validation = 60}, 200), ElementsAre(150, 60, 0)) << "refused later";
  EXPECT_THAT(sizes({.training = 300}, 200), ElementsAre(300, 1, 0)) << "refused later";
  EXPECT_THAT(sizes({}, 200, 80), ElementsAre(200, 80, 0));
  EXPECT_THAT(sizes({.test = 30}, 200, 80), ElementsAre(200, 30, 30));
  EXPECT_THAT(sizes({.training = 100, .validation = 20}, 200, 80), ElementsAre(100, 20, 0));
}

TEST(QuestionFiles, ThatArePipesAreRefused) {
  const auto refused = ThrowsMessage<InvalidArgument>(HasSubstr("not a regular file; pipes and devices are not read"));
  EXPECT_THAT([] { read_squad(testing::pipe_with("{}\n")); }, refused);
  EXPECT_THAT([] { read_nq_open(testing::pipe_with("{}\n")); }, refused);
}

TEST(QuestionSplits, OfTwoFilesSelectOnTheFirstTestRows) {
  std::vector<Question> test = numbered(30, "t");
  test[1].question = "q4";
  std::vector<Question> training = numbered(5);
  const QuestionSplit split = split_questions(training, test, {.training = 5, .validation = 4, .test = 10}, 1);
  EXPECT_EQ(split.repeated, 1);
  EXPECT_EQ(split.test.size(), 10u);
  EXPECT_EQ(split.test[1].id, "t2");
  EXPECT_EQ(split.selection_rows, 4);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(split.validation[i].id, split.test[i].id);
  EXPECT_THROW(split_questions(training, test, {.training = 6, .validation = 4}, 1), InvalidArgument);
  EXPECT_THROW(split_questions(training, test, {.training = 5, .validation = 4, .test = 30}, 1), InvalidArgument);
}

TEST(PublishedQuestions, AreReadWhole) {
  const auto squad_file = testing::shared_data("squad/dev-v1.1.json.gz");
  const auto nq_file = testing::shared_data("nq-open/nq-open-oracle.jsonl.gz");
  if (!squad_file || !nq_file) GTEST_SKIP() << "SKIPPED: no squad and nq-open in the shared data";
  const auto squad_questions = read_squad(*squad_file);
  EXPECT_EQ(squad_questions.size(), 10570u);
  EXPECT_EQ(groups_of(squad_questions).size(), 48u);
  const QuestionSplit split = split_questions(squad_questions, {.training = 1000, .validation = 200}, 0);
  EXPECT_EQ(split.training.size(), 1000u);
  const auto open = read_nq_open(*nq_file);
  EXPECT_EQ(open.size(), 2655u);
  EXPECT_EQ(open_prompts(open, 5, 0).distractors, Distractors::pool);
}

}  // namespace questions_test
}  // namespace gainlens::data
