#include "core/check.h"
#include "formats/gzip.h"
#include "tokenizers/code_points.h"
#include "tokenizers/readable.h"
#include "tokenizers/sentencepiece_model.h"
#include "tokenizers/sentencepiece_tokenizer.h"
#include "tokenizers/tokenizer_config.h"
#include "tokenizers/tokenizer_files.h"
#include "tokenizers/tokens_hint.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <mutex>
#include <span>
#include <utility>

namespace gainlens::tokenizers {
namespace {

class SentencePiece : public Tokenizer {
 public:
  SentencePiece(std::string_view model, SentencePieceSettings settings) : settings_(std::move(settings)) {
    CHECK(!model.empty(), "{}: empty; a SentencePiece model was expected", settings_.where);
    const std::string fault = fault_of(model);
    CHECK(fault.empty(), "{}: not a SentencePiece model that can be used: {}; fetch the file again", settings_.where,
          fault);
    const std::string quiet = without_self_test(model);
    const std::string reason = failure_of([&] { return processor_.LoadFromSerializedProto(quiet); });
    CHECK(reason.empty(), "{}: not a SentencePiece model ({}); fetch the file again", settings_.where,
          printable(reason));
    find_bos();
    facts_ = read_facts(model);
  }

  /// Text after a cut is encoded together with the character before the cut, because the library puts a space before
  /// each text. Nothing joins this character to the text, so its ids are those that it has alone.
  std::vector<TokenId> encode_from(std::string_view whole, std::size_t begin) const override {
    if (begin == 0) return encode_alone(whole);
    ASSERT(continues_at_cuts(), "a text is encoded from byte {} on", begin);
    const std::size_t before = start_of_last(whole, begin);
    std::vector<TokenId> ids = encode_alone(whole.substr(before));
    const std::vector<TokenId> known = encode_alone(whole.substr(before, begin - before));
    ASSERT(std::ranges::equal(known, std::span(ids).first(std::min(known.size(), ids.size()))),
           "a text was cut within a piece");
    ids.erase(ids.begin(), ids.begin() + std::ssize(known));
    return ids;
  }

  /// Merges are made in the same order left and right of a cut, whatever stands on its other side. The sums of a
  /// unigram model are rounded, and have other last digits if they begin elsewhere.
  bool continues_at_cuts() const override { return facts_.algorithm == SentencePieceFacts::Algorithm::bpe; }

  std::size_t last_cut(std::string_view text, std::size_t begin) const override {
    const bool known = facts_.algorithm == SentencePieceFacts::Algorithm::bpe ||
                       facts_.algorithm == SentencePieceFacts::Algorithm::unigram;
    if (!facts_.plain || !known || text.empty()) return begin;
    std::call_once(neighbours_made_, [this] { make_neighbours(); });
    for (std::size_t place = start_of_last(text, text.size()); place > begin;) {
      const std::size_t before = start_of_last(text, place);
      if (is_cut(code_point(text, before), code_point(text, place))) return place;
      place = before;
    }
    return begin;
  }

  /// The library counts in int, and a normalised text may be three times as long.
  std::size_t longest_text() const override { return std::size_t{512} << 20; }
  std::int64_t vocabulary_size() const override { return processor_.GetPieceSize(); }
  std::string token_text(TokenId id) const override {
    if (id < 0 || id >= processor_.GetPieceSize()) return {};
    const std::string& piece = processor_.IdToPiece(id);
    return readable(processor_.IsByte(id) ? byte_of_piece(piece).value_or(piece) : piece);
  }
  std::string token_bytes(TokenId id) const override {
    if (id < 0 || id >= processor_.GetPieceSize() || processor_.IsControl(id)) return {};
    const std::string& piece = processor_.IdToPiece(id);
    if (processor_.IsByte(id)) return byte_of_piece(piece).value_or(piece);
    return processor_.IsUnknown(id) ? processor_.DecodeIds({id}) : with_spaces(piece);
  }
  std::optional<TokenId> bos_token() const override { return bos_; }
  bool adds_bos() const override { return settings_.adds_bos; }
  std::string description() const override {
    return fmt::format("SentencePiece, {} tokens ({})", vocabulary_size(), settings_.source);
  }

 private:
  static constexpr char32_t space_sign = U'\u2581';

  /// Why the library failed, which is not trusted; empty if it did not. For most of what is wrong with a model it
  /// returns a state. The double array that it builds of the pieces throws.
  template <typename Call>
  static std::string failure_of(const Call& call) {
    try {
      const auto status = call();
      return status.ok() ? "" : status.ToString();
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {
      return error.what();
    }
  }

  std::vector<TokenId> encode_alone(std::string_view text) const {
    const std::string& where = settings_.where;
    CHECK(text.size() <= longest_text(), "{}: a text of {} bytes; at most {} are encoded at once", where, text.size(),
          longest_text());
    const auto invalid = first_invalid_utf8(text);
    CHECK(!invalid, "{}: the text is not UTF-8 at byte {}; convert it, for example with iconv -t UTF-8", where,
          *invalid);
    std::vector<int> ids;
    const std::string reason = failure_of([&] { return processor_.Encode({text.data(), text.size()}, &ids); });
    // The text is in order, so the vocabulary is not: for example, a control piece that pieces of text merge to.
    CHECK(reason.empty(), "{}: SentencePiece cannot encode a text with this vocabulary ({}); fetch the file again",
          where, printable(reason));
    return ids;
  }

  /// Whether no piece can hold these two characters side by side, and no run of unknown characters, which becomes one
  /// unknown token.
  bool is_cut(char32_t left, char32_t right) const {
    if (left == U' ') left = space_sign;
    if (right == U' ') right = space_sign;
    if (std::ranges::binary_search(neighbours_, pair_of(left, right))) return false;
    return facts_.byte_fallback || std::ranges::binary_search(characters_, left) ||
           std::ranges::binary_search(characters_, right);
  }

  static std::uint64_t pair_of(char32_t left, char32_t right) { return std::uint64_t{left} << 32 | right; }

  void make_neighbours() const {
    for (int id = 0; id < processor_.GetPieceSize(); ++id) {
      const std::string& piece = processor_.IdToPiece(id);
      if (piece.empty() || first_invalid_utf8(piece)) continue;
      std::size_t position = 0;
      char32_t left = next_code_point(piece, position);
      const bool taken = !processor_.IsUnknown(id) && !processor_.IsControl(id) && !processor_.IsUnused(id);
      if (position == piece.size() && taken) characters_.push_back(left);
      while (position < piece.size()) {
        const char32_t right = next_code_point(piece, position);
        neighbours_.push_back(pair_of(left, right));
        left = right;
      }
    }
    std::ranges::sort(characters_);
    std::ranges::sort(neighbours_);
    neighbours_.erase(std::unique(neighbours_.begin(), neighbours_.end()), neighbours_.end());
    neighbours_.shrink_to_fit();
  }

  void find_bos() {
    if (processor_.bos_id() >= 0) bos_ = processor_.bos_id();
    if (!settings_.bos_piece) return;
    const int id = processor_.PieceToId(*settings_.bos_piece);
    if (!processor_.IsUnknown(id)) bos_ = id;
  }

  SentencePieceSettings settings_;
  sentencepiece::SentencePieceProcessor processor_;
  std::optional<TokenId> bos_;
  SentencePieceFacts facts_;
  // Made at the first cut: a short text needs none.
  mutable std::once_flag neighbours_made_;
  mutable std::vector<std::uint64_t> neighbours_;  ///< characters that stand side by side in a piece, sorted
  mutable std::vector<char32_t> characters_;       ///< characters that are pieces, sorted
};

std::unique_ptr<Tokenizer> read_sentencepiece(const std::filesystem::path& model) {
  const TokenizerConfig config = read_tokenizer_config(model.parent_path());
  SentencePieceSettings settings;
  settings.where = printable(model.string());
  settings.source = sentencepiece_file;
  // If the configuration does not say, Llama's default is used: the model families with a tokenizer.model put BOS
  // first.
  settings.adds_bos = config.add_bos_token.value_or(true);
  settings.bos_piece = config.bos_token;
  return make_sentencepiece(formats::read_plain_or_gzip(model, largest_tokenizer_file), std::move(settings));
}

}  // namespace

std::unique_ptr<Tokenizer> make_sentencepiece(std::string_view serialised_model, SentencePieceSettings settings) {
  return std::make_unique<SentencePiece>(serialised_model, std::move(settings));
}

std::unique_ptr<Tokenizer> open_sentencepiece(const std::filesystem::path& model) {
  return with_tokens_hint([&] { return read_sentencepiece(model); });
}

}  // namespace gainlens::tokenizers
