#include "tokenizers/normalizer.h"

#include "core/check.h"
#include "tokenizers/byte_level.h"
#include "tokenizers/code_points.h"
#include "tokenizers/pattern.h"

#include <unicode/bytestream.h>
#include <unicode/locid.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <algorithm>

namespace gainlens::tokenizers {
namespace {

/// A text with the length that all steps together may give it. The most that a character grows is 18-fold (U+FDFA in
/// NFKC) and then 2-fold (ByteLevel). A file can ask for more, step by step a thousandfold, until memory ends.
NormalizedText limited(NormalizedText from) {
  constexpr std::size_t max_growth = 64, short_text_bytes = 1 << 16;
  if (from.max_bytes == 0) from.max_bytes = from.text.size() * max_growth + short_text_bytes;
  return from;
}

void check_growth(std::size_t bytes, std::size_t max_bytes, const std::string& where) {
  CHECK(
      bytes <= max_bytes,
      "{}: makes a text more than 64 times as long (over {} bytes); use a tokenizer whose normaliser does not multiply "
      "texts",
      where, max_bytes);
}

class UnicodeForm : public Normalizer {
 public:
  using Instance = const icu::Normalizer2* (*)(UErrorCode&);
  UnicodeForm(Instance instance, std::string where) : where_(std::move(where)) {
    UErrorCode status = U_ZERO_ERROR;
    normalizer_ = instance(status);
    ASSERT(U_SUCCESS(status), "ICU normalisation is not available: {}", u_errorName(status));
  }
  NormalizedText apply(NormalizedText from) const override {
    const std::string& text = from.text;
    CHECK(text.size() < std::size_t{INT32_MAX},
          "{}: a text of {} bytes is too long to normalise at once; give a shorter one", where_, text.size());
    std::string result;
    icu::StringByteSink<std::string> sink(&result);
    UErrorCode status = U_ZERO_ERROR;
    normalizer_->normalizeUTF8(0, icu::StringPiece(text.data(), static_cast<std::int32_t>(text.size())), sink, nullptr,
                               status);
    if (U_FAILURE(status)) throw_run_failed("{}: ICU could not normalise the text: {}", where_, u_errorName(status));
    return {std::move(result), from.at_start, from.continues, from.max_bytes};
  }

 private:
  bool cuts_before(std::string_view right) const override {
    std::size_t position = 0;
    return !right.empty() && normalizer_->hasBoundaryBefore(static_cast<UChar32>(next_code_point(right, position)));
  }

  const icu::Normalizer2* normalizer_ = nullptr;  // owned by ICU
  std::string where_;
};

class Prepend : public Normalizer {
 public:
  explicit Prepend(std::string prefix) : prefix_(std::move(prefix)) {}
  NormalizedText apply(NormalizedText from) const override {
    if (!from.text.empty() && !from.continues) from.text.insert(0, prefix_);
    return from;
  }

 private:
  bool cuts_before(std::string_view /*right*/) const override { return true; }

  std::string prefix_;
};

/// Replaces every match of a pattern by a literal text. Strip and StripAccents use it with an empty text.
class Replace : public Normalizer {
 public:
  /// @param by_character  whether the result is that of each character alone
  Replace(Pattern pattern, std::string content, bool by_character, std::string where)
      : pattern_(std::move(pattern)),
        content_(std::move(content)),
        by_character_(by_character),
        where_(std::move(where)) {}
  NormalizedText apply(NormalizedText from) const override {
    from = limited(std::move(from));
    std::string result;
    bool at_start = from.at_start;
    result.reserve(from.text.size());
    for (const Span& span : pattern_.spans(from.text)) {
      if (span.matched && span.begin == 0 && span.end > 0 && content_.empty()) at_start = false;
      result += span.matched ? std::string_view(content_)
                             : std::string_view(from.text).substr(span.begin, span.end - span.begin);
      check_growth(result.size(), from.max_bytes, where_);
    }
    return {std::move(result), at_start, from.continues, from.max_bytes};
  }

 private:
  bool cuts_before(std::string_view /*right*/) const override { return by_character_; }

  Pattern pattern_;
  std::string content_;
  bool by_character_;
  std::string where_;
};

/// Converts each character alone, so a final sigma is treated like any other sigma, as in the reference.
class Lowercase : public Normalizer {
 public:
  NormalizedText apply(NormalizedText from) const override {
    const std::string& text = from.text;
    std::string result;
    result.reserve(text.size());
    for (std::size_t position = 0; position < text.size();) {
      const std::size_t start = position;
      if (static_cast<unsigned char>(text[position]) < 0x80) {
        result += static_cast<char>(u_tolower(static_cast<unsigned char>(text[position++])));
        continue;
      }
      next_code_point(text, position);
      icu::UnicodeString::fromUTF8({text.data() + start, static_cast<std::int32_t>(position - start)})
          .toLower(icu::Locale::getRoot())
          .toUTF8String(result);
    }
    return {std::move(result), from.at_start, from.continues, from.max_bytes};
  }

 private:
  bool cuts_before(std::string_view /*right*/) const override { return true; }
};

class ByteLevel : public Normalizer {
 public:
  NormalizedText apply(NormalizedText from) const override {
    std::string result;
    append_byte_level(from.text, result);
    return {std::move(result), from.at_start, from.continues, from.max_bytes};
  }

 private:
  bool cuts_before(std::string_view /*right*/) const override { return true; }
};

class Sequence : public Normalizer {
 public:
  Sequence(std::vector<std::unique_ptr<Normalizer>> steps, std::string where)
      : steps_(std::move(steps)), where_(std::move(where)) {}
  NormalizedText apply(NormalizedText from) const override {
    from = limited(std::move(from));
    for (const auto& step : steps_) {
      from = step->apply(std::move(from));
      check_growth(from.text.size(), from.max_bytes, where_);
    }
    return from;
  }
  bool cut(std::string& left, std::string& right) const override {
    return std::all_of(steps_.begin(), steps_.end(), [&](const auto& step) { return step->cut(left, right); });
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> steps_;
  std::string where_;
};

std::unique_ptr<Normalizer> make_strip(const JsonNode& node) {
  node.allow_only({"type", "strip_left", "strip_right"});
  const bool left = node.at("strip_left").boolean(), right = node.at("strip_right").boolean();
  if (!left && !right) return nullptr;
  const char* pattern = left && right ? R"(\A\s+|\s+\z)" : left ? R"(\A\s+)" : R"(\s+\z)";
  return std::make_unique<Replace>(Pattern::oniguruma(pattern, node.where()), "", false, node.where());
}

std::unique_ptr<Normalizer> make_sequence(const JsonNode& node) {
  node.allow_only({"type", "normalizers"});
  std::vector<std::unique_ptr<Normalizer>> steps;
  for (const JsonNode& item : node.at("normalizers").items()) {
    if (auto step = make_normalizer(item)) steps.push_back(std::move(step));
  }
  return std::make_unique<Sequence>(std::move(steps), node.where());
}

std::unique_ptr<Normalizer> make_plain(const JsonNode& node, const std::string& type) {
  node.allow_only({"type"});
  if (type == "NFC") return std::make_unique<UnicodeForm>(&icu::Normalizer2::getNFCInstance, node.where());
  if (type == "NFD") return std::make_unique<UnicodeForm>(&icu::Normalizer2::getNFDInstance, node.where());
  if (type == "NFKC") return std::make_unique<UnicodeForm>(&icu::Normalizer2::getNFKCInstance, node.where());
  if (type == "NFKD") return std::make_unique<UnicodeForm>(&icu::Normalizer2::getNFKDInstance, node.where());
  if (type == "Lowercase") return std::make_unique<Lowercase>();
  if (type == "StripAccents")
    return std::make_unique<Replace>(Pattern::oniguruma(R"(\p{M}+)", node.where()), "", true, node.where());
  if (type == "ByteLevel") return std::make_unique<ByteLevel>();
  node.unsupported(fmt::format("normalizer '{}'", printable(type)));
}

}  // namespace

bool Normalizer::cut(std::string& left, std::string& right) const {
  if (!cuts_before(right)) return false;
  left = apply({std::move(left), false, true}).text;
  right = apply({std::move(right), false, true}).text;
  return !left.empty() && !right.empty();
}

std::unique_ptr<Normalizer> make_normalizer(const JsonNode& node) {
  if (node.is_null()) return nullptr;
  const std::string type = node.at("type").text();
  if (type == "Sequence") return make_sequence(node);
  if (type == "Strip") return make_strip(node);
  if (type == "Prepend") {
    node.allow_only({"type", "prepend"});
    return std::make_unique<Prepend>(node.at("prepend").text());
  }
  if (type == "Replace") {
    node.allow_only({"type", "pattern", "content"});
    const JsonNode pattern = node.at("pattern");
    const bool by_character = pattern.has("String") && only_code_point(pattern.at("String").text());
    return std::make_unique<Replace>(read_pattern(pattern), node.at("content").text(), by_character, node.where());
  }
  return make_plain(node, type);
}

}  // namespace gainlens::tokenizers
