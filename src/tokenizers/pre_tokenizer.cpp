#include "tokenizers/pre_tokenizer.h"

#include "core/check.h"
#include "tokenizers/byte_level.h"
#include "tokenizers/code_points.h"
#include "tokenizers/pattern.h"
#include "tokenizers/split.h"
#include "tokenizers/unicode_scripts.h"

#include <algorithm>
#include <optional>

namespace gainlens::tokenizers {
namespace {

using Sink = PreTokenizer::Sink;

void send(std::string_view text, bool at_start, const std::vector<Span>& pieces, const Sink& sink) {
  for (const Span& piece : pieces) {
    if (piece.begin != piece.end) sink(text.substr(piece.begin, piece.end - piece.begin), at_start && piece.begin == 0);
  }
}

/// Candidates for a cut that are looked at. Nearly always one of the first is right.
constexpr int max_candidates = 32;

/// The last place p <= most between two pieces where the text can be cut. `certain` are pieces that nothing behind them
/// changes, so the rest of the text, cut off there, has the same pieces. The text before has them only if none of its
/// matches depends on what follows: "\s+(?!\S)" leaves the last space to the next word, and takes it at the end of a
/// text. So `pieces_of` is asked for the pieces of this text alone.
template <typename PiecesOf>
std::size_t last_cut_between(const std::vector<Span>& certain, std::string_view text, std::size_t most,
                             const PiecesOf& pieces_of) {
  const auto same_place = [](const Span& a, const Span& b) { return a.begin == b.begin && a.end == b.end; };
  int candidates = 0;
  for (std::size_t i = certain.size(); i-- > 1 && candidates < max_candidates;) {
    const std::size_t place = certain[i].begin;
    if (place > most || place == 0) continue;
    ++candidates;
    const std::vector<Span> alone = pieces_of(text.substr(0, place));
    if (alone.size() == i && std::equal(alone.begin(), alone.end(), certain.begin(), same_place)) return place;
  }
  return 0;
}

class Split : public PreTokenizer {
 public:
  /// @param character  the pattern, if it is this character
  Split(Pattern pattern, SplitBehavior behavior, bool invert, std::optional<char32_t> character = {})
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert), character_(character) {}
  void apply(std::string_view text, TextPlace place, const Sink& sink) const override {
    send(text, place.at_start, pieces(pattern_.spans(text)), sink);
  }
  std::size_t last_cut(std::string_view text, TextPlace /*place*/, std::size_t most) const override {
    if (!pattern_.starts_anywhere()) return 0;
    return last_cut_between(certain_pieces(pattern_.certain_spans(text)), text, most,
                            [this](std::string_view alone) { return pieces(pattern_.spans(alone)); });
  }
  /// A match is one character, so none is near.
  std::optional<std::pair<char32_t, char32_t>> within_word(char32_t left, char32_t right) const override {
    if (!character_ || left == *character_ || right == *character_) return std::nullopt;
    return std::pair{left, right};
  }

 private:
  std::vector<Span> pieces(std::vector<Span> spans) const {
    if (invert_) {
      for (Span& span : spans) span.matched = !span.matched;
    }
    return split_spans(std::move(spans), behavior_);
  }
  /// Whether a span is joined to the one before it depends on these two alone. So all pieces are certain, but the last:
  /// the next span may be joined to it.
  std::vector<Span> certain_pieces(std::vector<Span> spans) const {
    std::vector<Span> all = pieces(std::move(spans));
    if (!all.empty()) all.pop_back();
    return all;
  }

  Pattern pattern_;
  SplitBehavior behavior_;
  bool invert_;
  std::optional<char32_t> character_;
};

class ByteLevel : public PreTokenizer {
 public:
  ByteLevel(bool add_prefix_space, std::optional<Pattern> pattern)
      : add_prefix_space_(add_prefix_space), pattern_(std::move(pattern)) {}
  void apply(std::string_view text, TextPlace place, const Sink& sink) const override {
    if (!is_prefixed(text, place)) return cut(text, place.at_start, sink);
    std::string prefixed(1, ' ');
    prefixed += text;
    cut(prefixed, place.at_start, sink);
  }
  std::size_t last_cut(std::string_view text, TextPlace place, std::size_t most) const override {
    if (!pattern_ || !pattern_->starts_anywhere()) return 0;
    if (!is_prefixed(text, place)) return last_cut_of(text, most);
    std::string prefixed(1, ' ');
    prefixed += text;
    const std::size_t found = last_cut_of(prefixed, most + 1);
    return found > 0 ? found - 1 : 0;
  }

 private:
  bool is_prefixed(std::string_view text, TextPlace place) const {
    return add_prefix_space_ && !place.continues && !text.empty() && !text.starts_with(' ');
  }

  std::size_t last_cut_of(std::string_view text, std::size_t most) const {
    return last_cut_between(pattern_->certain_spans(text), text, most,
                            [this](std::string_view alone) { return pattern_->spans(alone); });
  }

  void cut(std::string_view text, bool at_start, const Sink& sink) const {
    std::string mapped;
    const auto map = [&](std::string_view word, bool first) {
      mapped.clear();
      append_byte_level(word, mapped);
      sink(mapped, first);
    };
    if (!pattern_) return map(text, at_start);
    send(text, at_start, pattern_->spans(text), map);
  }

  bool add_prefix_space_;
  std::optional<Pattern> pattern_;
};

/// As in SentencePiece: spaces become a visible sign, one sign is put before the text, and a word starts at each sign.
class Metaspace : public PreTokenizer {
 public:
  enum class Prepend { always, first, never };
  Metaspace(std::string replacement, Prepend prepend, bool split, const std::string& where)
      : replacement_(std::move(replacement)),
        prepend_(prepend),
        split_(split),
        pattern_(Pattern::literal(replacement_, where)) {}
  void apply(std::string_view text, TextPlace place, const Sink& sink) const override {
    if (text.empty()) return;
    std::string replaced;
    for (const char byte : text) {
      if (byte == ' ')
        replaced += replacement_;
      else
        replaced += byte;
    }
    const bool wanted =
        !place.continues && (prepend_ == Prepend::always || (prepend_ == Prepend::first && place.at_start));
    if (wanted && !replaced.starts_with(replacement_)) replaced.insert(0, replacement_);
    if (!split_) return sink(replaced, place.at_start);
    send(replaced, place.at_start, split_spans(pattern_.spans(replaced), SplitBehavior::merged_with_next), sink);
  }
  /// The cut is before a space.
  std::size_t last_cut(std::string_view text, TextPlace /*place*/, std::size_t most) const override {
    if (!split_ || most == 0) return 0;
    const std::size_t space = text.rfind(' ', most);
    return space == std::string_view::npos ? 0 : space;
  }
  std::optional<std::pair<char32_t, char32_t>> within_word(char32_t left, char32_t right) const override {
    if (split_) return std::nullopt;
    const char32_t sign = code_point(replacement_, 0);
    return std::pair{left == U' ' ? sign : left, right == U' ' ? sign : right};
  }

 private:
  std::string replacement_;
  Prepend prepend_;
  bool split_;
  Pattern pattern_;
};

class UnicodeScripts : public PreTokenizer {
 public:
  void apply(std::string_view text, TextPlace place, const Sink& sink) const override {
    send(text, place.at_start, script_pieces(text), sink);
  }
  std::size_t last_cut(std::string_view text, TextPlace /*place*/, std::size_t most) const override {
    return last_cut_between(script_pieces(text), text, most, script_pieces);
  }
};

class Sequence : public PreTokenizer {
 public:
  explicit Sequence(std::vector<std::unique_ptr<PreTokenizer>> steps) : steps_(std::move(steps)) {}
  void apply(std::string_view text, TextPlace place, const Sink& sink) const override { run(0, text, place, sink); }
  /// The cut is between words of the first step: the later steps see one of these words at a time.
  std::size_t last_cut(std::string_view text, TextPlace place, std::size_t most) const override {
    return steps_.empty() ? 0 : steps_.front()->last_cut(text, place, most);
  }
  std::optional<std::pair<char32_t, char32_t>> within_word(char32_t left, char32_t right) const override {
    return steps_.size() == 1 ? steps_.front()->within_word(left, right) : std::nullopt;
  }

 private:
  void run(std::size_t step, std::string_view text, TextPlace place, const Sink& sink) const {
    if (step == steps_.size()) return sink(text, place.at_start);
    steps_[step]->apply(text, place, [&](std::string_view word, bool first) {
      run(step + 1, word, {first, false}, sink);
    });
  }

  std::vector<std::unique_ptr<PreTokenizer>> steps_;
};

std::unique_ptr<PreTokenizer> make_metaspace(const JsonNode& node) {
  node.allow_only({"type", "replacement", "prepend_scheme", "split", "add_prefix_space", "str_rep"});
  const bool prefix = node.at("add_prefix_space").boolean_or(true);  // older files
  const std::string scheme = node.has("prepend_scheme") ? node.at("prepend_scheme").text()
                             : prefix                   ? "always"
                                                        : "never";
  CHECK(prefix || scheme == "never", "{}: add_prefix_space is false, but prepend_scheme is '{}'; they must agree",
        node.where(), printable(scheme));
  Metaspace::Prepend prepend = Metaspace::Prepend::never;
  if (scheme == "always")
    prepend = Metaspace::Prepend::always;
  else if (scheme == "first")
    prepend = Metaspace::Prepend::first;
  else if (scheme != "never")
    node.unsupported(fmt::format("prepend_scheme '{}'", printable(scheme)));
  return std::make_unique<Metaspace>(node.at("replacement").character(), prepend, node.at("split").boolean_or(true),
                                     node.where());
}

std::unique_ptr<PreTokenizer> make_split(const JsonNode& node) {
  node.allow_only({"type", "pattern", "behavior", "invert"});
  const JsonNode pattern = node.at("pattern");
  std::optional<char32_t> character;
  if (pattern.has("String")) character = only_code_point(pattern.at("String").text());
  return std::make_unique<Split>(read_pattern(pattern), read_split_behavior(node.at("behavior")),
                                 node.at("invert").boolean_or(false), character);
}

std::unique_ptr<PreTokenizer> make_digits(const JsonNode& node) {
  node.allow_only({"type", "individual_digits"});
  const auto behavior =
      node.at("individual_digits").boolean_or(false) ? SplitBehavior::isolated : SplitBehavior::contiguous;
  return std::make_unique<Split>(Pattern::pcre2(R"(\p{N})", node.where()), behavior, false);
}

std::unique_ptr<PreTokenizer> make_punctuation(const JsonNode& node) {
  node.allow_only({"type", "behavior"});
  const auto behavior = node.has("behavior") ? read_split_behavior(node.at("behavior")) : SplitBehavior::isolated;
  return std::make_unique<Split>(Pattern::pcre2(R"([!-/:-@\[-`{-~\p{P}])", node.where()), behavior, false);
}

/// Cuts into words and runs of other signs; drops white space. The classes are those of the reference's Rust patterns.
std::unique_ptr<PreTokenizer> make_whitespace(const JsonNode& node) {
  node.allow_only({"type"});
  const char* pattern = R"([\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]+|)"
                        R"([^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}\p{White_Space}]+)";
  return std::make_unique<Split>(Pattern::pcre2(pattern, node.where()), SplitBehavior::removed, true);
}

std::unique_ptr<PreTokenizer> make_sequence(const JsonNode& node) {
  node.allow_only({"type", "pretokenizers"});
  std::vector<std::unique_ptr<PreTokenizer>> steps;
  for (const JsonNode& item : node.at("pretokenizers").items()) {
    auto step = make_pre_tokenizer(item);
    CHECK(step != nullptr, "{}: null in a sequence; give a pre-tokenizer", item.where());
    steps.push_back(std::move(step));
  }
  return std::make_unique<Sequence>(std::move(steps));
}

}  // namespace

std::unique_ptr<PreTokenizer> make_byte_level(bool add_prefix_space, bool use_pattern) {
  std::optional<Pattern> pattern;
  if (use_pattern) pattern = Pattern::oniguruma(gpt2_pattern, "GPT-2's pattern of words");
  return std::make_unique<ByteLevel>(add_prefix_space, std::move(pattern));
}

std::unique_ptr<PreTokenizer> make_pre_tokenizer(const JsonNode& node) {
  if (node.is_null()) return nullptr;
  const std::string type = node.at("type").text();
  if (type == "Sequence") return make_sequence(node);
  if (type == "Split") return make_split(node);
  if (type == "Metaspace") return make_metaspace(node);
  if (type == "Digits") return make_digits(node);
  if (type == "Punctuation") return make_punctuation(node);
  if (type == "Whitespace") return make_whitespace(node);
  if (type == "WhitespaceSplit") {
    node.allow_only({"type"});
    return std::make_unique<Split>(Pattern::pcre2(R"(\p{White_Space})", node.where()), SplitBehavior::removed, false);
  }
  if (type == "UnicodeScripts") {
    node.allow_only({"type"});
    return std::make_unique<UnicodeScripts>();
  }
  if (type == "ByteLevel") {
    node.allow_only({"type", "add_prefix_space", "trim_offsets", "use_regex"});
    return make_byte_level(node.at("add_prefix_space").boolean(), node.at("use_regex").boolean_or(true));
  }
  node.unsupported(fmt::format("pre-tokenizer '{}'", printable(type)));
}

}  // namespace gainlens::tokenizers
