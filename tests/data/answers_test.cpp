#include "core/error.h"
#include "data/answer_corruption.h"
#include "data/answer_scores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gainlens::data {
namespace answers_test {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(NormalisedAnswer, CasesByHand) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"The Norman   Conquest.", "norman conquest"},
      {"a", ""},
      {"", ""},
      {" \t\n", ""},
      {"The theatre and an anthem", "theatre and anthem"},
      {"A-Team", "ateam"},                             // the hyphen goes before articles are looked for
      {"24\u201310", "24\u201310"},                    // an en dash is no ASCII punctuation
      {"the\u2013end a\u2013b", "\u2013end \u2013b"},  // and an article beside it stands alone
      {"U.S.A.", "usa"},
      {"O'Neill's", "oneills"},
      {"snake_case", "snakecase"},
      {"Caf\u00c9 AN \u00c9clair", "caf\u00e9 \u00e9clair"},
      {"a\u0301", "\u0301"},  // Python's \w does not take a mark: the letter before it is an article
      {"the2", "the2"},
      {"1\u00a0000\u2003km", "1 000 km"},            // every white space of Unicode
      {"\u0130", "i\u0307"},                         // becomes two characters
      {"\u03a3\u0391\u03a3", "\u03c3\u03b1\u03c2"},  // a final sigma
  };
  for (const auto& [answer, expected] : cases) EXPECT_EQ(normalised_answer(answer), expected) << answer;
}

struct Scored {
  std::string prediction;
  std::vector<std::string> accepted;
  double exact, f1;
};

TEST(AnswerScore, CasesByHand) {
  const std::vector<Scored> cases = {
      {"Denver Broncos", {"the Denver Broncos!"}, 1, 1},
      {"Denver", {"Denver Broncos"}, 0, 2.0 / 3},
      {"Broncos Denver", {"Denver Broncos"}, 0, 1},  // the order of words does not count for F1
      {"no no no", {"no no"}, 0, 0.8},               // common 2, of 3 and of 2
      {"no no", {"no"}, 0, 2.0 / 3},
      {"x", {"y"}, 0, 0},
      {"", {"y"}, 0, 0},
      {"the", {"a"}, 1, 0},  // both are empty: equal, and no word is common
      {"2018", {"May 18, 2018", "Deadpool 2", "2018"}, 1, 1},
      {"may 2018", {"May 18, 2018", "Deadpool 2"}, 0, 0.8},
      {"24-10", {"24\u201310"}, 0, 0},                 // "2410" is not "24\u201310"
      {"well-known man", {"well known man"}, 0, 0.4},  // "wellknown man"
  };
  for (const Scored& one : cases) {
    const AnswerScore found = answer_score(one.prediction, one.accepted);
    EXPECT_EQ(found.exact, one.exact) << one.prediction;
    EXPECT_DOUBLE_EQ(found.f1, one.f1) << one.prediction;
  }
}

std::vector<Question> with_answers(const std::vector<std::string>& answers) {
  std::vector<Question> questions;
  for (const std::string& answer : answers)
    questions.push_back({std::to_string(questions.size()), "g", "q", "p", {answer}});
  return questions;
}

/// Words of a text.
std::vector<std::string> words(std::string text) {
  std::vector<std::string> found;
  for (std::size_t end = text.find(' '); end != std::string::npos; end = text.find(' ')) {
    found.push_back(text.substr(0, end));
    text.erase(0, end + 1);
  }
  found.push_back(text);
  return found;
}

TEST(AnswerCorruption, LevelsAreNestedAndDonorsStay) {
  std::string answer = "w0";
  for (int i = 1; i < 2000; ++i) answer += " w" + std::to_string(i);
  const AnswerCorruption corruption(with_answers({answer}), 3);
  EXPECT_EQ(corruption.words(), 2000);
  EXPECT_EQ(corruption.corrupted(answer, "id", 0), answer);
  const std::vector<std::string> original = words(answer);
  std::vector<std::string> before = original;
  for (const double percent : {10.0, 20.0, 30.0, 40.0, 100.0}) {
    const std::vector<std::string> now = words(corruption.corrupted(answer, "id", percent));
    ASSERT_EQ(now.size(), original.size());
    double replaced = 0;
    for (std::size_t i = 0; i < now.size(); ++i) {
      replaced += now[i] == original[i] ? 0 : 1;
      if (before[i] == original[i]) continue;
      EXPECT_EQ(now[i], before[i]);
    }
    EXPECT_NEAR(replaced / 2000, percent / 100, 0.035) << percent;  // three deviations
    before = now;
  }
  EXPECT_EQ(before.size(), 2000u);
  for (std::size_t i = 0; i < before.size(); ++i) EXPECT_NE(before[i], original[i]);  // at 100 all of them
}

TEST(AnswerCorruption, FollowsFromSeedQuestionAndPlace) {
  const std::vector<Question> questions = with_answers({"one two", "three four five six seven", "two eight nine ten"});
  const AnswerCorruption first(questions, 1), again(questions, 1), other(questions, 2);
  const std::string answer = "one two two two three four five six seven eight";
  EXPECT_EQ(first.words(), 10);
  EXPECT_EQ(first.corrupted(answer, "a", 50), again.corrupted(answer, "a", 50));
  EXPECT_NE(first.corrupted(answer, "a", 50), other.corrupted(answer, "a", 50));
  EXPECT_NE(first.corrupted(answer, "a", 50), first.corrupted(answer, "b", 50));
  EXPECT_EQ(first.corrupted("  one\ttwo \n", "a", 0), "  one\ttwo \n");  // white space stays
}

TEST(AnswerCorruption, BadInputIsRefused) {
  const AnswerCorruption one(with_answers({"word word"}), 1);
  EXPECT_EQ(one.words(), 1);
  EXPECT_EQ(one.corrupted("other", "a", 100), "word");
  EXPECT_THAT([&] { one.corrupted("word", "a", 100); },
              ThrowsMessage<InvalidArgument>(HasSubstr("the answers have no other word than 'word'")));
  for (const double wrong : {-1.0, 100.5}) EXPECT_THROW(one.corrupted("word", "a", wrong), InvalidArgument);
}

}  // namespace answers_test
}  // namespace gainlens::data
