#include "language/train_tokenizer.h"

#include "core/atomic_file.h"
#include "core/check.h"
#include "core/json.h"

#include <sentencepiece_trainer.h>

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_map>

namespace gainlens::language {
namespace {

constexpr std::int64_t min_vocabulary = 300;  // 256 bytes, 3 control pieces and a few letters
constexpr std::int64_t largest_vocabulary = 1 << 20;
// In bytes. SentencePiece silently leaves out longer lines, so they are cut here.
constexpr std::size_t longest_line = std::size_t{1} << 20;

/// Iterates over the lines of the texts that are not empty. Cuts lines longer than longest_line.
class Lines final : public sentencepiece::SentenceIterator {
 public:
  explicit Lines(std::span<const std::string> texts) : texts_(texts) { Next(); }

  bool done() const override { return done_; }
  const std::string& value() const override { return line_; }
  sentencepiece::util::Status status() const override { return {}; }

  void Next() override {
    do {
      if (!take_line()) {
        done_ = true;
        return;
      }
    } while (line_.empty());
  }

 private:
  bool take_line() {
    while (text_ < texts_.size() && begin_ >= texts_[text_].size()) {
      ++text_;
      begin_ = 0;
    }
    if (text_ == texts_.size()) return false;
    const std::string_view rest = std::string_view(texts_[text_]).substr(begin_);
    const std::size_t newline = rest.find('\n');
    std::size_t length = std::min(newline, rest.size());
    const bool cut = length > longest_line;
    if (cut) length = whole_characters(rest.substr(0, longest_line));
    line_ = rest.substr(0, length);
    begin_ += length + (cut || newline == std::string_view::npos ? 0 : 1);
    return true;
  }

  /// Length of `text` without its last character, which may be cut in two.
  static std::size_t whole_characters(std::string_view text) {
    std::size_t end = text.size();
    while (end > 0 && (static_cast<unsigned char>(text[end - 1]) & 0xc0) == 0x80) --end;
    return end > 0 ? end - 1 : text.size();
  }

  std::span<const std::string> texts_;
  std::size_t text_ = 0;
  std::size_t begin_ = 0;
  std::string line_;
  bool done_ = false;
};

/// The number after the last `mark` in a text.
std::optional<std::int64_t> number_after(std::string_view text, std::string_view mark) {
  const std::size_t place = text.rfind(mark);
  if (place == std::string_view::npos) return std::nullopt;
  std::int64_t number = 0;
  const char* const begin = text.data() + place + mark.size();
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

/// What the library found, with its numbers: its own words name a place in its source, and options of another program.
std::string why_no_vocabulary(std::string_view message, std::int64_t pieces) {
  const std::string where = fmt::format("training text: cannot make a vocabulary of {} pieces from it", pieces);
  const bool too_small = message.find("smaller than required_chars") != std::string_view::npos;
  const bool too_large = message.find("Vocabulary size too high") != std::string_view::npos;
  const auto least = number_after(message, " vs "), most = number_after(message, " <= ");
  if (too_small && least)
    return fmt::format("{}: its characters take at least {}; take more pieces, or a smaller 'character_coverage'",
                       where, *least);
  if (too_large && most && *most < min_vocabulary)
    return fmt::format("{}: it gives at most {}, and a vocabulary has at least {}; give more text", where, *most,
                       min_vocabulary);
  if (too_large && most) return fmt::format("{}: it gives at most {}; give more text or fewer pieces", where, *most);
  return fmt::format("{} ({}); give more text or another number of pieces", where, printable(message, 600));
}

}  // namespace

void check(const TokenizerRecipe& recipe) {
  CHECK(recipe.vocabulary >= min_vocabulary && recipe.vocabulary <= largest_vocabulary,
        "tokenizer: {} pieces; must be {} to {}", recipe.vocabulary, min_vocabulary, largest_vocabulary);
  CHECK(recipe.algorithm == "bpe" || recipe.algorithm == "unigram", "tokenizer: algorithm '{}'; must be bpe or unigram",
        printable(recipe.algorithm, 40));
  CHECK(recipe.character_coverage >= 0.98 && recipe.character_coverage <= 1,
        "tokenizer: character coverage {}; must be 0.98 to 1", recipe.character_coverage);
}

std::string train_tokenizer(std::span<const std::string> texts, const TokenizerRecipe& recipe) {
  check(recipe);
  Lines lines(texts);
  CHECK(!lines.done(), "training text: all lines are empty; give a text with words");
  const std::unordered_map<std::string, std::string> arguments = {
      {"model_type", recipe.algorithm},
      {"vocab_size", std::to_string(recipe.vocabulary)},
      {"character_coverage", fmt::format("{}", recipe.character_coverage)},
      {"byte_fallback", "true"},
      {"normalization_rule_name", "identity"},
      {"remove_extra_whitespaces", "false"},
      {"max_sentence_length", std::to_string(longest_line)},
      {"num_threads", "1"},
      {"minloglevel", "2"},
  };
  std::string model;
  const auto status = sentencepiece::SentencePieceTrainer::Train(arguments, &lines, &model);
  if (!status.ok()) throw_invalid("{}", why_no_vocabulary(status.message(), recipe.vocabulary));
  return model;
}

void write_tokenizer(const std::string& model, const std::filesystem::path& folder) {
  ensure_writable_folder(folder);
  write_file_atomically(folder / "tokenizer.model", model);
  const OrderedJson config = {{"tokenizer_class", "LlamaTokenizer"},
                              {"add_bos_token", true},
                              {"add_eos_token", false},
                              {"bos_token", "<s>"},
                              {"eos_token", "</s>"},
                              {"unk_token", "<unk>"},
                              {"legacy", true}};
  write_file_atomically(folder / "tokenizer_config.json", config.dump(2) + "\n");
}

}  // namespace gainlens::language
