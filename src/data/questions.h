#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::data {

/// A question as a language model gets it.
struct Question {
  std::string id;        ///< unique in its file
  std::string group;     ///< questions of one group share their context and are never on both sides of a split
  std::string question;  ///< the question alone; equal ones are never on both sides of a split
  std::string prompt;    ///< what the model reads, up to and without the answer
  std::vector<std::string> answers;  ///< accepted ones, at least one, none of them blank
};

/// SQuAD v1.1, as published. The group is the article. The prompt is
/// "Context: CONTEXT\nQuestion: QUESTION\nAnswer:". The paper does not print its own.
/// @param file  plain or gzipped JSON
/// @throws InvalidArgument  not such a file (names the article and question), an answer that does not stand in its
///     context, a question without an answer, an id twice
std::vector<Question> read_squad(const std::filesystem::path& file);

/// Questions of any kind, a line `{"prompt": "..", "answers": ["..", ..]}` for each; "id" and "group" may be given too.
/// The id of other lines is their number, from 1, and their group that id. The question is the prompt.
/// @param file  plain or gzipped JSON Lines
/// @throws InvalidArgument  another line (named), no line, an id twice
std::vector<Question> read_prompts_and_answers(const std::filesystem::path& file);

/// A passage that may answer a question.
struct Passage {
  std::string title, text;
};

/// A question of NQ-Open with its gold passage, and passages that do not hold an answer.
struct OpenQuestion {
  std::string question;
  std::vector<std::string> answers;
  Passage gold;
  std::vector<Passage> distractors;  ///< as retrieved, the best first; empty where the file has none
};

/// The JSON Lines of Lost in the Middle (github.com/nelson-liu/lost-in-the-middle): "question", "answers" and "ctxs",
/// each with "title", "text", "hasanswer" and "isgold". A passage with the answer that is not the gold one is no
/// distractor.
/// @param file  plain or gzipped
/// @throws InvalidArgument  another line (named), no line, a question without gold passage or answer
std::vector<OpenQuestion> read_nq_open(const std::filesystem::path& file);

/// Where distractors come from.
enum class Distractors {
  retrieved,  ///< those of the file
  pool,       ///< gold passages of other questions, without any of the answers: easier than retrieved ones
};

struct OpenPrompts {
  std::vector<Question> questions;
  Distractors distractors = Distractors::retrieved;
};

/// @throws InvalidArgument  fewer than one passage
void check_passages(std::int64_t passages);

/// Makes prompts of `passages` passages each: the gold one at a place that is drawn uniformly, and distractors. They
/// are retrieved if every question has enough of them, else all are drawn from the pool. The prompt is that of Lost in
/// the Middle. The same seed gives the same prompts; the draws of a question do not depend on the other questions.
/// @throws InvalidArgument  as check_passages(); a pool too small for a question
OpenPrompts open_prompts(const std::vector<OpenQuestion>& questions, std::int64_t passages, std::uint64_t seed);

}  // namespace gainlens::data
