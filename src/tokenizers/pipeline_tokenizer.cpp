#include "tokenizers/pipeline_tokenizer.h"

#include "core/check.h"
#include "tokenizers/byte_level.h"
#include "tokenizers/code_points.h"
#include "tokenizers/readable.h"

#include <mutex>
#include <optional>
#include <utility>

namespace gainlens::tokenizers {
namespace {

/// Words behind which a cut is tried. Nearly always one of the first is right.
constexpr int max_candidates = 32;

/// Bytes at the end of a long text where no cut is tried: an added token that begins there may not be known whole.
constexpr std::size_t left_alone = 1024;

/// A place of a text where it can be cut before it is normalised.
struct Cut {
  std::size_t place = 0;         ///< in the text as given
  std::size_t normalized = 0;    ///< in the normalised text
  char32_t left = 0, right = 0;  ///< the normalised characters on both sides
};

/// Finds places of a text where its normalisation can be cut, from the end of the text to its start.
class CutFinder {
 public:
  /// @param normalizer  may be null
  /// @param normalized  bytes of the normalised text
  CutFinder(const Normalizer* normalizer, std::string_view text, std::size_t normalized)
      : normalizer_(normalizer), text_(text), size_(normalized), place_(text.size()) {}

  /// The next cut whose place in the normalised text is below `end`.
  std::optional<Cut> before(std::size_t end) {
    while (auto cut = next()) {
      if (cut->normalized < end) return cut;
    }
    return std::nullopt;
  }

  /// The cut at a place of the normalised text. Each place has to lie before the last one. Nothing if the
  /// normalisation cannot be cut there.
  std::optional<Cut> at(std::size_t normalized) {
    if (waiting_ && waiting_->normalized < normalized) return std::nullopt;
    std::optional<Cut> cut = std::exchange(waiting_, std::nullopt);
    while (!cut || cut->normalized > normalized) {
      cut = next();
      if (!cut) return std::nullopt;
    }
    if (cut->normalized == normalized) return cut;
    waiting_ = cut;
    return std::nullopt;
  }

 private:
  /// The next cut before the last one.
  std::optional<Cut> next() {
    while (place_ > 0 && (place_ = start_of_last(text_, place_)) > 0) {
      if (auto cut = cut_here()) return cut;
    }
    return std::nullopt;
  }

  std::optional<Cut> cut_here() {
    if (normalizer_ == nullptr) return Cut{place_, place_, last_code_point(text_, place_), code_point(text_, place_)};
    std::size_t begin = place_ - 1, end = place_ + 1;
    while (begin > 0 && !is_ascii(begin) && place_ - begin < widest) --begin;
    while (end < text_.size() && !is_ascii(end) && end - place_ < widest) ++end;
    // Marks that follow may belong to the last character.
    if (end >= text_.size() || !is_ascii(end) || (begin > 0 && !is_ascii(begin))) return std::nullopt;
    std::string left(text_.substr(begin, place_ - begin)), right(text_.substr(place_, end - place_));
    if (!normalizer_->cut(left, right)) return std::nullopt;
    return Cut{place_, normalized_before(), last_code_point(left, left.size()), code_point(right, 0)};
  }

  /// The normalised size of the text before the place: known at the last cut, and less by what lies between.
  std::size_t normalized_before() {
    if (last_ == 0) {
      // The text behind the first cut is short.
      const std::size_t behind = normalizer_->apply({std::string(text_.substr(place_)), false, true}).text.size();
      normalized_ = size_ - behind;
    } else {
      normalized_ -= normalizer_->apply({std::string(text_.substr(place_, last_ - place_)), false, true}).text.size();
    }
    last_ = place_;
    return normalized_;
  }

  bool is_ascii(std::size_t position) const { return static_cast<unsigned char>(text_[position]) < 0x80; }

  static constexpr std::size_t widest = 256;  ///< bytes that are looked at on each side

  const Normalizer* normalizer_;
  std::string_view text_;
  std::size_t size_;            ///< of the normalised text
  std::size_t place_;           ///< the last place that was looked at
  std::size_t last_ = 0;        ///< the last cut; 0: none yet
  std::size_t normalized_ = 0;  ///< of the text before the last cut
  std::optional<Cut> waiting_;  ///< found by at(), and before the place that was asked for
};

class Pipeline : public Tokenizer {
 public:
  Pipeline(TokenizerParts parts, std::string where) : parts_(std::move(parts)), where_(std::move(where)) {
    Vocabulary all = parts_.model->vocabulary();
    for (const AddedToken& token : parts_.added_tokens) {
      all.add(token.content, token.id, where_);
      (token.normalized ? after_ : before_).add(token, written(token));
    }
    size_ = all.end_id();
    CHECK(!parts_.bos || *parts_.bos < size_, "{}: BOS id {} is beyond the {} tokens there are", where_, *parts_.bos,
          size_);
  }

  std::vector<TokenId> encode_from(std::string_view whole, std::size_t begin) const override {
    const std::string_view text = whole.substr(begin);
    CHECK(text.size() <= longest_text(), "{}: a text of {} bytes; at most {} are encoded at once", where_, text.size(),
          longest_text());
    const auto invalid = first_invalid_utf8(text);
    CHECK(!invalid, "{}: the text is not UTF-8 at byte {}; convert it, for example with iconv -t UTF-8", where_,
          *invalid);
    std::vector<TokenId> ids;
    // A text comes in many parts. A second thread has words of its own.
    Bpe::Cache own;
    const std::unique_lock lock(words_in_use_, std::try_to_lock);
    Bpe::Cache& cache = lock ? words_ : own;
    for (const auto& part : before_.split(text)) {
      if (part.token)
        ids.push_back(*part.token);
      else
        encode_between(part.text, place_of(part, begin), cache, ids);
    }
    return ids;
  }

  bool continues_at_cuts() const override { return true; }

  std::size_t last_cut(std::string_view whole, std::size_t begin) const override {
    const std::string_view text = whole.substr(begin);
    const auto parts = before_.split(text);
    // NOLINTNEXTLINE(modernize-loop-convert): clang 14 cannot read the standard library's reverse views
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      if (part->token) continue;
      const auto may_cut = [&](std::size_t place) { return before_.may_cut(text, part->begin + place); };
      const std::size_t place = last_cut_between(part->text, place_of(*part, begin), may_cut);
      if (place > 0) return begin + part->begin + place;
    }
    return begin;
  }

  std::size_t longest_text() const override { return INT32_MAX - 1; }
  std::int64_t vocabulary_size() const override { return size_; }
  std::string token_text(TokenId id) const override { return readable(texts_of(id).shown); }
  std::string token_bytes(TokenId id) const override { return texts_of(id).bytes; }
  std::optional<TokenId> bos_token() const override { return parts_.bos; }
  bool adds_bos() const override { return parts_.adds_bos; }
  std::string bos_doubt() const override { return parts_.bos_doubt; }
  std::string description() const override { return fmt::format(fmt::runtime(parts_.description), size_); }

 private:
  /// The text to look for: normalised if the token is looked for in the normalised text.
  std::string written(const AddedToken& token) const {
    CHECK(!token.content.empty(), "{}: added token {} is empty; give it a text", where_, token.id);
    if (!token.normalized || !parts_.normalizer) return token.content;
    std::string text = parts_.normalizer->apply({token.content, true, false}).text;
    CHECK(!text.empty(), "{}: the normaliser removes all of added token '{}'; declare it \"normalized\": false", where_,
          printable(token.content));
    return text;
  }

  /// The place of a text between added tokens.
  /// @param begin  where the searched text begins: 0, or a cut
  static TextPlace place_of(const AddedTokenFinder::Part& part, std::size_t begin) {
    return {begin == 0 && part.begin == 0, begin > 0 && part.begin == 0};
  }

  NormalizedText normalized(std::string_view text, TextPlace place) const {
    NormalizedText result{std::string(text), place.at_start, place.continues};
    return parts_.normalizer ? parts_.normalizer->apply(std::move(result)) : result;
  }

  static TextPlace place_of(const AddedTokenFinder::Part& part, const NormalizedText& whole) {
    return {whole.at_start && part.begin == 0, whole.continues && part.begin == 0};
  }

  void encode_between(std::string_view text, TextPlace place, Bpe::Cache& cache, std::vector<TokenId>& ids) const {
    const NormalizedText whole = normalized(text, place);
    for (const auto& part : after_.split(whole.text)) {
      if (part.token)
        ids.push_back(*part.token);
      else
        encode_words(part.text, place_of(part, whole), cache, ids);
    }
  }

  /// The last place where a text between added tokens can be cut, for each step of the tokenizer; 0 if none is found.
  /// @param may_cut  whether the search for added tokens can be cut at a place of the text
  template <typename MayCut>
  std::size_t last_cut_between(std::string_view text, TextPlace place, const MayCut& may_cut) const {
    NormalizedText whole = normalized(text, place);
    CutFinder finder(parts_.normalizer.get(), text, whole.text.size());
    const auto parts = after_.split(whole.text);
    // NOLINTNEXTLINE(modernize-loop-convert): clang 14 cannot read the standard library's reverse views
    for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
      if (part->token) continue;
      const auto accepts = [&](const Cut& cut) {
        const bool inside = part->begin < cut.normalized && cut.normalized < part->begin + part->text.size();
        return inside && may_cut(cut.place) && after_.may_cut(whole.text, cut.normalized);
      };
      const std::size_t cut = last_cut_of_words(*part, place_of(*part, whole), finder, accepts);
      if (cut > 0) return cut;
    }
    return 0;
  }

  /// @param finder  of the text between added tokens; goes on where it stands
  template <typename Accepts>
  std::size_t last_cut_of_words(const AddedTokenFinder::Part& part, TextPlace place, CutFinder& finder,
                                const Accepts& accepts) const {
    std::size_t most = part.text.size();
    if (most > 8 * left_alone) most -= left_alone;
    for (int candidates = 0; parts_.pre_tokenizer && candidates < max_candidates && most > 0; ++candidates) {
      most = parts_.pre_tokenizer->last_cut(part.text, place, most - 1);
      if (most == 0) break;
      // The place in the given text is the one that is normalised to this one.
      const std::optional<Cut> cut = finder.at(part.begin + most);
      if (cut && accepts(*cut)) return cut->place;
    }
    return last_cut_within_word(part, finder, accepts);
  }

  /// Some tokenizers make one word of the whole text. Its merges say where it can be cut.
  template <typename Accepts>
  std::size_t last_cut_within_word(const AddedTokenFinder::Part& part, CutFinder& finder,
                                   const Accepts& accepts) const {
    while (const auto cut = finder.before(part.begin + part.text.size())) {
      if (cut->normalized <= part.begin) return 0;
      std::optional<std::pair<char32_t, char32_t>> sides(std::in_place, cut->left, cut->right);
      if (parts_.pre_tokenizer) sides = parts_.pre_tokenizer->within_word(cut->left, cut->right);
      if (sides && parts_.model->always_cut(sides->first, sides->second) && accepts(*cut)) return cut->place;
    }
    return 0;
  }

  /// What a token stands for.
  struct Texts {
    std::string shown;  ///< of a byte, or of the token as the vocabulary has it
    std::string bytes;  ///< as it adds to a text
  };

  Texts text_of(const std::string& token) const {
    std::optional<std::string> bytes;
    if (parts_.token_bytes == TokenBytes::byte_level) bytes = byte_level_bytes(token);
    if (parts_.token_bytes == TokenBytes::byte_fallback) bytes = byte_of_piece(token);
    if (bytes) return {*bytes, *bytes};
    return {token, parts_.token_bytes == TokenBytes::byte_level ? token : with_spaces(token)};
  }

  void make_texts() const {
    texts_.resize(static_cast<std::size_t>(size_));
    for (const auto& [token, id] : parts_.model->vocabulary()) texts_[static_cast<std::size_t>(id)] = text_of(token);
    for (const AddedToken& token : parts_.added_tokens)  // stand in the text as they are
      texts_[static_cast<std::size_t>(token.id)] = {token.content, token.content};
  }

  const Texts& texts_of(TokenId id) const {
    static const Texts none;
    std::call_once(texts_made_, [this] { make_texts(); });
    return id >= 0 && std::cmp_less(id, texts_.size()) ? texts_[static_cast<std::size_t>(id)] : none;
  }

  void encode_words(std::string_view text, TextPlace place, Bpe::Cache& cache, std::vector<TokenId>& ids) const {
    if (!parts_.pre_tokenizer) return parts_.model->encode(text, cache, ids);
    parts_.pre_tokenizer->apply(text, place,
                                [&](std::string_view word, bool) { parts_.model->encode(word, cache, ids); });
  }

  TokenizerParts parts_;
  std::string where_;
  AddedTokenFinder before_, after_;  ///< tokens to look for before and after normalisation
  std::int64_t size_ = 0;
  // Made when the first text is asked for: encoding needs none.
  mutable std::once_flag texts_made_;
  mutable std::vector<Texts> texts_;  ///< [id]
  mutable std::mutex words_in_use_;
  mutable Bpe::Cache words_;
};

}  // namespace

std::unique_ptr<Tokenizer> make_pipeline(TokenizerParts parts, std::string where) {
  ASSERT(parts.model != nullptr, "a pipeline without a model");
  return std::make_unique<Pipeline>(std::move(parts), std::move(where));
}

}  // namespace gainlens::tokenizers
