#include "data/questions.h"

#include "core/check.h"
#include "core/json.h"
#include "core/random.h"
#include "core/sha256.h"
#include "data/text.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <set>

namespace gainlens::data {
namespace {

constexpr std::uint64_t max_bytes = std::uint64_t{1} << 30;

/// The text of a member.
std::string text_at(const Json& object, const char* key, const std::string& where) {
  CHECK(object.is_object(), "{}: is not a JSON object", where);
  const auto found = object.find(key);
  CHECK(found != object.end() && found->is_string(), "{}: has no text '{}'", where, key);
  return found->get<std::string>();
}

const Json& list_at(const Json& object, const char* key, const std::string& where) {
  CHECK(object.is_object() && object.contains(key) && object.at(key).is_array(), "{}: has no list '{}'", where, key);
  return object.at(key);
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

std::vector<std::string> answers_at(const Json& object, const std::string& where) {
  std::vector<std::string> answers;
  for (const Json& answer : list_at(object, "answers", where)) {
    CHECK(answer.is_string() && !is_blank(answer.get<std::string>()), "{}: an answer is not a text, or blank", where);
    answers.push_back(answer.get<std::string>());
  }
  CHECK(!answers.empty(), "{}: has no answer", where);
  return answers;
}

void take_id(const std::string& id, std::set<std::string>& ids, const std::string& where) {
  CHECK(ids.insert(id).second, "{}: the id '{}' is there twice", where, printable(id, 60));
}

/// Calls `take` with the JSON of each line.
void for_each_line(const std::filesystem::path& file,
                   const std::function<void(const Json&, const std::string&)>& take) {
  const std::string text = read_text(file, max_bytes);
  const std::string name = printable(file.string());
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    const std::string where = fmt::format("{}: line {}", name, ++number);
    CHECK(!is_blank(line), "{}: is blank", where);
    take(parse_json(line, where), where);
  }
  CHECK(number > 0, "{}: has no line", name);
}

/// One question of an article.
Question squad_question(const Json& entry, const std::string& title, const std::string& context,
                        const std::string& where) {
  Question made;
  made.id = text_at(entry, "id", where);
  made.group = title;
  made.question = text_at(entry, "question", where);
  const std::string place = fmt::format("{}: question '{}'", where, printable(made.id, 60));
  made.prompt = fmt::format("Context: {}\nQuestion: {}\nAnswer:", context, made.question);
  for (const Json& answer : list_at(entry, "answers", place)) {
    const std::string text = text_at(answer, "text", place);
    CHECK(!is_blank(text), "{}: an answer is blank", place);
    CHECK(context.find(text) != std::string::npos, "{}: the answer '{}' does not stand in its context", place,
          printable(text, 60));
    made.answers.push_back(text);
  }
  CHECK(!made.answers.empty(), "{}: has no answer", place);
  return made;
}

OpenQuestion open_question(const Json& entry, const std::string& where) {
  OpenQuestion made;
  made.question = text_at(entry, "question", where);
  made.answers = answers_at(entry, where);
  bool has_gold = false;
  for (const Json& passage : list_at(entry, "ctxs", where)) {
    const Passage read{text_at(passage, "title", where), text_at(passage, "text", where)};
    const auto flag = [&](const char* key) {
      CHECK(passage.contains(key) && passage.at(key).is_boolean(), "{}: a passage has no '{}'", where, key);
      return passage.at(key).get<bool>();
    };
    if (flag("isgold")) {
      CHECK(!has_gold, "{}: has two gold passages", where);
      made.gold = read;
      has_gold = true;
    } else if (!flag("hasanswer")) {
      made.distractors.push_back(read);
    }
  }
  CHECK(has_gold, "{}: has no gold passage", where);
  return made;
}

bool holds_answer(const Passage& passage, const std::vector<std::string>& answers) {
  return std::any_of(answers.begin(), answers.end(), [&](const std::string& answer) {
    return passage.text.find(answer) != std::string::npos || passage.title.find(answer) != std::string::npos;
  });
}

/// A stream of draws that belongs to the question alone.
std::uint64_t stream_of(const std::string& question) {
  const std::string hex = sha256_hex(question).substr(0, 16);
  std::uint64_t stream = 0;
  std::from_chars(hex.data(), hex.data() + hex.size(), stream, 16);
  return stream;
}

std::vector<Passage> from_pool(const std::vector<OpenQuestion>& all, const OpenQuestion& own, std::int64_t count,
                               Random& random) {
  std::vector<Passage> drawn;
  std::set<std::string> texts = {own.gold.text};
  // Most passages serve; a bound keeps a pool without enough of them from running for ever.
  for (std::size_t tries = 0; std::ssize(drawn) < count && tries < 100 * (all.size() + 10); ++tries) {
    const Passage& passage = all[static_cast<std::size_t>(random.below(all.size()))].gold;
    if (!holds_answer(passage, own.answers) && texts.insert(passage.text).second) drawn.push_back(passage);
  }
  CHECK(std::ssize(drawn) == count, "question '{}': the pool has fewer than {} passages without its answer",
        printable(own.question, 60), count);
  return drawn;
}

std::string open_prompt(const std::string& question, const std::vector<Passage>& passages) {
  std::string prompt =
      "Write a high-quality answer for the given question using only the provided search results (some of which might "
      "be irrelevant).\n\n";
  for (std::size_t i = 0; i < passages.size(); ++i)
    prompt += fmt::format("Document [{}](Title: {}) {}\n", i + 1, passages[i].title, passages[i].text);
  return prompt + fmt::format("\nQuestion: {}\nAnswer:", question);
}

}  // namespace

std::vector<Question> read_squad(const std::filesystem::path& file) {
  const std::string name = printable(file.string());
  const Json document = parse_json(read_text(file, max_bytes), name);
  std::vector<Question> questions;
  std::set<std::string> ids;
  for (const Json& article : list_at(document, "data", name)) {
    const std::string title = text_at(article, "title", name);
    const std::string where = fmt::format("{}: article '{}'", name, printable(title, 60));
    for (const Json& paragraph : list_at(article, "paragraphs", where)) {
      const std::string context = text_at(paragraph, "context", where);
      for (const Json& entry : list_at(paragraph, "qas", where)) {
        questions.push_back(squad_question(entry, title, context, where));
        take_id(questions.back().id, ids, where);
      }
    }
  }
  CHECK(!questions.empty(), "{}: has no question", name);
  return questions;
}

std::vector<Question> read_prompts_and_answers(const std::filesystem::path& file) {
  std::vector<Question> questions;
  std::set<std::string> ids;
  for_each_line(file, [&](const Json& json, const std::string& where) {
    Question made;
    made.prompt = text_at(json, "prompt", where);
    CHECK(!is_blank(made.prompt), "{}: the prompt is blank", where);
    made.question = made.prompt;
    made.answers = answers_at(json, where);
    for (const auto& [key, value] : json.items())
      CHECK(key == "prompt" || key == "answers" || key == "id" || key == "group",
            "{}: has the member '{}'; must be {{\"prompt\": \"..\", \"answers\": [..]}}, with \"id\" and \"group\" if "
            "they are known",
            where, printable(key, 60));
    made.id = json.contains("id") ? text_at(json, "id", where) : std::to_string(questions.size() + 1);
    made.group = json.contains("group") ? text_at(json, "group", where) : made.id;
    take_id(made.id, ids, where);
    questions.push_back(std::move(made));
  });
  return questions;
}

std::vector<OpenQuestion> read_nq_open(const std::filesystem::path& file) {
  std::vector<OpenQuestion> questions;
  for_each_line(file,
                [&](const Json& json, const std::string& where) { questions.push_back(open_question(json, where)); });
  return questions;
}

void check_passages(std::int64_t passages) {
  CHECK(passages >= 1, "--passages: {}; must be at least 1", passages);
}

OpenPrompts open_prompts(const std::vector<OpenQuestion>& questions, std::int64_t passages, std::uint64_t seed) {
  check_passages(passages);
  OpenPrompts made;
  for (const OpenQuestion& question : questions)
    if (std::ssize(question.distractors) < passages - 1) made.distractors = Distractors::pool;
  for (std::size_t i = 0; i < questions.size(); ++i) {
    const OpenQuestion& own = questions[i];
    Random random(seed, stream_of(own.question));
    std::vector<Passage> shown =
        made.distractors == Distractors::pool
            ? from_pool(questions, own, passages - 1, random)
            : std::vector<Passage>(own.distractors.begin(), own.distractors.begin() + passages - 1);
    const auto place = static_cast<std::ptrdiff_t>(random.below(static_cast<std::uint64_t>(passages)));
    shown.insert(shown.begin() + place, own.gold);
    made.questions.push_back(
        {std::to_string(i + 1), own.question, own.question, open_prompt(own.question, shown), own.answers});
  }
  return made;
}

}  // namespace gainlens::data
