#include "core/check.h"
#include "formats/gzip.h"
#include "tokenizers/code_points.h"
#include "tokenizers/sentencepiece_tokenizer.h"
#include "tokenizers/tokenizer_config.h"
#include "tokenizers/tokenizer_files.h"
#include "tokenizers/tokens_hint.h"

#include <sentencepiece_processor.h>

#include <utility>

namespace gainlens::tokenizers {
namespace {

class SentencePiece : public Tokenizer {
 public:
  SentencePiece(std::string_view model, SentencePieceSettings settings) : settings_(std::move(settings)) {
    CHECK(!model.empty(), "{}: empty; a SentencePiece model was expected", settings_.where);
    const auto status = processor_.LoadFromSerializedProto(absl::string_view(model.data(), model.size()));
    CHECK(status.ok(), "{}: not a SentencePiece model ({}); fetch the file again", settings_.where,
          printable(status.message()));
    find_bos();
  }

  std::vector<TokenId> encode(std::string_view text) const override {
    const std::string& where = settings_.where;
    CHECK(text.size() <= longest_text(), "{}: a text of {} bytes; at most {} are encoded at once", where, text.size(),
          longest_text());
    const auto invalid = first_invalid_utf8(text);
    CHECK(!invalid, "{}: the text is not UTF-8 at byte {}; convert it, for example with iconv -t UTF-8", where,
          *invalid);
    std::vector<int> ids;
    const auto status = processor_.Encode(absl::string_view(text.data(), text.size()), &ids);
    // The text is in order, so the vocabulary is not: for example, a control piece that pieces of text merge to.
    CHECK(status.ok(), "{}: SentencePiece cannot encode a text with this vocabulary ({}); fetch the file again", where,
          printable(status.message()));
    return {ids.begin(), ids.end()};
  }

  /// The library counts in int, and a normalised text may be three times as long.
  std::size_t longest_text() const override { return std::size_t{512} << 20; }
  std::int64_t vocabulary_size() const override { return processor_.GetPieceSize(); }
  std::optional<TokenId> bos_token() const override { return bos_; }
  bool adds_bos() const override { return settings_.adds_bos; }
  std::string description() const override {
    return fmt::format("SentencePiece, {} tokens ({})", vocabulary_size(), settings_.source);
  }

 private:
  void find_bos() {
    if (processor_.bos_id() >= 0) bos_ = processor_.bos_id();
    if (!settings_.bos_piece) return;
    const int id = processor_.PieceToId(*settings_.bos_piece);
    if (!processor_.IsUnknown(id)) bos_ = id;
  }

  SentencePieceSettings settings_;
  sentencepiece::SentencePieceProcessor processor_;
  std::optional<TokenId> bos_;
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
