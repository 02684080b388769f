#include "data/question_split.h"

#include "core/check.h"
#include "core/random.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

namespace gainlens::data {
namespace {

void check_enough(std::int64_t found, std::int64_t wanted, const char* option) {
  CHECK(found >= wanted, "{}: {} questions; only {} are left for it", option, wanted, found);
}

/// Leaves out questions whose text was seen.
void leave_out_repeats(std::vector<Question>& questions, const std::set<std::string>& seen, QuestionSplit& split) {
  split.repeated += static_cast<std::int64_t>(
      std::erase_if(questions, [&seen](const Question& question) { return seen.contains(question.question); }));
}

void see(const std::vector<Question>& questions, std::set<std::string>& seen) {
  for (const Question& question : questions) seen.insert(question.question);
}

}  // namespace

std::int64_t distinct_questions(const std::vector<Question>& questions) {
  std::set<std::string> seen;
  see(questions, seen);
  return std::ssize(seen);
}

SplitSizes fitted_sizes(const AskedSizes& asked, std::int64_t questions, std::optional<std::int64_t> test_questions) {
  SplitSizes sizes{asked.training.value_or(default_rows), asked.validation.value_or(default_rows), asked.test};
  const auto fitted = [](std::int64_t most) { return std::clamp<std::int64_t>(most, 1, default_rows); };
  if (test_questions) {
    if (!asked.training) sizes.training = fitted(questions);
    if (!asked.validation)
      sizes.validation = fitted(asked.test > 0 ? std::min(asked.test, *test_questions) : *test_questions);
    return sizes;
  }
  if (sizes.training + sizes.validation + std::max<std::int64_t>(sizes.test, 1) <= questions) return sizes;
  const std::int64_t left = questions - asked.training.value_or(0) - asked.validation.value_or(0) - asked.test;
  const std::int64_t parts = (asked.training ? 0 : 3) + (asked.validation ? 0 : 1) + (asked.test > 0 ? 0 : 1);
  if (!asked.training) sizes.training = fitted(left * 3 / parts);
  if (!asked.validation) sizes.validation = fitted(left / parts);
  return sizes;
}

void check_sizes(const SplitSizes& sizes) {
  CHECK(sizes.training >= 1, "--train-rows: {}; must be at least 1", sizes.training);
  CHECK(sizes.validation >= 1, "--validation-rows: {}; must be at least 1", sizes.validation);
  CHECK(sizes.test >= 0, "--test-rows: {}; must be at least 1, or 0 for all", sizes.test);
}

QuestionSplit split_questions(std::vector<Question> all, const SplitSizes& sizes, std::uint64_t seed) {
  check_sizes(sizes);
  std::map<std::string, std::vector<Question>> groups;
  for (Question& question : all) groups[question.group].push_back(std::move(question));
  std::vector<std::string> order;
  order.reserve(groups.size());
  for (const auto& [name, members] : groups) order.push_back(name);
  Random random(seed);
  random.shuffle(order);
  QuestionSplit split;
  std::set<std::string> seen;
  std::size_t next = 0;
  const auto fill = [&](std::vector<Question>& part, std::int64_t wanted, const char* option) {
    while (next < order.size() && (wanted == 0 || std::ssize(part) < wanted)) {
      std::vector<Question> members = std::move(groups[order[next++]]);
      leave_out_repeats(members, seen, split);
      part.insert(part.end(), members.begin(), members.end());
    }
    check_enough(std::ssize(part), std::max<std::int64_t>(wanted, 1), option);
    random.shuffle(part);
    if (wanted > 0) part.resize(static_cast<std::size_t>(wanted));
    see(part, seen);
  };
  fill(split.training, sizes.training, "--train-rows");
  fill(split.validation, sizes.validation, "--validation-rows");
  fill(split.test, sizes.test, "--test-rows");
  return split;
}

QuestionSplit split_questions(std::vector<Question> training, std::vector<Question> test, const SplitSizes& sizes,
                              std::uint64_t seed) {
  check_sizes(sizes);
  QuestionSplit split;
  split.training = std::move(training);
  Random random(seed);
  random.shuffle(split.training);
  check_enough(std::ssize(split.training), sizes.training, "--train-rows");
  split.training.resize(static_cast<std::size_t>(sizes.training));
  std::set<std::string> seen;
  see(split.training, seen);
  split.test = std::move(test);
  leave_out_repeats(split.test, seen, split);
  if (sizes.test > 0) {
    check_enough(std::ssize(split.test), sizes.test, "--test-rows");
    split.test.resize(static_cast<std::size_t>(sizes.test));
  }
  check_enough(std::ssize(split.test), sizes.validation, "--validation-rows");
  split.selection_rows = sizes.validation;
  split.validation.assign(split.test.begin(), split.test.begin() + sizes.validation);
  return split;
}

}  // namespace gainlens::data
