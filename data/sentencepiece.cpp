#include "core/error.h"
#include "data/gzip.h"
#include "data/tokenizer.h"
#include "data/tokenizer_config.h"
#include "data/tokenizer_files.h"
#include "data/utf8.h"
#include "data/way_round.h"

#include <sentencepiece_processor.h>

namespace gainlens::data {
namespace {

/// The library counts in int, and a normalised text may be three times as long.
constexpr std::size_t longest_text = std::size_t{512} << 20;

class SentencePiece : public Tokenizer {
 public:
  explicit SentencePiece(const std::filesystem::path& model) : where_(printable(model.string())) {
    const std::string bytes = read_plain_or_gzip(model, largest_tokenizer_file);
    CHECK(!bytes.empty(), "{}: empty; a SentencePiece model was expected", where_);
    const auto status = processor_.LoadFromSerializedProto(bytes);
    CHECK(status.ok(), "{}: not a SentencePiece model ({}); fetch the file again", where_, printable(status.message()));
    const TokenizerConfig config = read_tokenizer_config(model.parent_path());
    // Without a word about it, Llama's default holds: the families that ship tokenizer.model put BOS first.
    adds_bos_ = config.add_bos_token.value_or(true);
    find_bos(config);
  }

  std::vector<TokenId> encode(std::string_view text) const override {
    CHECK(text.size() <= longest_text, "{}: a text of {} bytes; at most {} are encoded at once", where_, text.size(), longest_text);
    const auto invalid = first_invalid_utf8(text);
    CHECK(!invalid, "{}: the text is not UTF-8 at byte {}; convert it, for example with iconv -t UTF-8", where_, *invalid);
    std::vector<int> ids;
    const auto status = processor_.Encode(absl::string_view(text.data(), text.size()), &ids);
    if (!status.ok()) throw_run_failed("{}: SentencePiece could not encode the text: {}", where_, status.message());
    return {ids.begin(), ids.end()};
  }

  std::int64_t vocabulary_size() const override { return processor_.GetPieceSize(); }
  std::optional<TokenId> bos_token() const override { return bos_; }
  bool adds_bos() const override { return adds_bos_; }
  std::string description() const override { return fmt::format("SentencePiece, {} tokens (tokenizer.model)", vocabulary_size()); }

 private:
  void find_bos(const TokenizerConfig& config) {
    if (processor_.bos_id() >= 0) bos_ = processor_.bos_id();
    if (!config.bos_token) return;
    const int id = processor_.PieceToId(*config.bos_token);
    if (!processor_.IsUnknown(id)) bos_ = id;
  }

  std::string where_;
  sentencepiece::SentencePieceProcessor processor_;
  std::optional<TokenId> bos_;
  bool adds_bos_ = false;
};

}  // namespace

std::unique_ptr<Tokenizer> open_sentencepiece(const std::filesystem::path& model) {
  return with_way_round([&]() -> std::unique_ptr<Tokenizer> { return std::make_unique<SentencePiece>(model); });
}

}  // namespace gainlens::data
