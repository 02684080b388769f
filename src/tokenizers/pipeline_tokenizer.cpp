#include "tokenizers/pipeline_tokenizer.h"

#include "core/check.h"
#include "tokenizers/code_points.h"

namespace gainlens::tokenizers {
namespace {

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

  std::vector<TokenId> encode(std::string_view text) const override {
    CHECK(text.size() <= longest_text(), "{}: a text of {} bytes; at most {} are encoded at once", where_, text.size(),
          longest_text());
    const auto invalid = first_invalid_utf8(text);
    CHECK(!invalid, "{}: the text is not UTF-8 at byte {}; convert it, for example with iconv -t UTF-8", where_,
          *invalid);
    std::vector<TokenId> ids;
    Bpe::Cache cache;
    for (const auto& part : before_.split(text)) {
      if (part.token)
        ids.push_back(*part.token);
      else
        encode_between(part.text, part.begin == 0, cache, ids);
    }
    return ids;
  }

  std::size_t longest_text() const override { return INT32_MAX - 1; }
  std::int64_t vocabulary_size() const override { return size_; }
  std::optional<TokenId> bos_token() const override { return parts_.bos; }
  bool adds_bos() const override { return parts_.adds_bos; }
  std::string bos_doubt() const override { return parts_.bos_doubt; }
  std::string description() const override { return fmt::format(fmt::runtime(parts_.description), size_); }

 private:
  /// The text to look for: normalised if the token is looked for in the normalised text.
  std::string written(const AddedToken& token) const {
    CHECK(!token.content.empty(), "{}: added token {} is empty; give it a text", where_, token.id);
    if (!token.normalized || !parts_.normalizer) return token.content;
    std::string text = parts_.normalizer->apply({token.content}).text;
    CHECK(!text.empty(), "{}: the normaliser removes all of added token '{}'; declare it \"normalized\": false", where_,
          printable(token.content));
    return text;
  }

  void encode_between(std::string_view text, bool at_start, Bpe::Cache& cache, std::vector<TokenId>& ids) const {
    NormalizedText normalized{std::string(text), at_start};
    if (parts_.normalizer) normalized = parts_.normalizer->apply(std::move(normalized));
    for (const auto& part : after_.split(normalized.text)) {
      if (part.token)
        ids.push_back(*part.token);
      else
        encode_words(part.text, normalized.at_start && part.begin == 0, cache, ids);
    }
  }

  void encode_words(std::string_view text, bool at_start, Bpe::Cache& cache, std::vector<TokenId>& ids) const {
    if (!parts_.pre_tokenizer) return parts_.model->encode(text, cache, ids);
    parts_.pre_tokenizer->apply(text, at_start,
                                [&](std::string_view word, bool) { parts_.model->encode(word, cache, ids); });
  }

  TokenizerParts parts_;
  std::string where_;
  AddedTokenFinder before_, after_;  ///< tokens to look for before and after normalisation
  std::int64_t size_ = 0;
};

}  // namespace

std::unique_ptr<Tokenizer> make_pipeline(TokenizerParts parts, std::string where) {
  ASSERT(parts.model != nullptr, "a pipeline without a model");
  return std::make_unique<Pipeline>(std::move(parts), std::move(where));
}

}  // namespace gainlens::tokenizers
