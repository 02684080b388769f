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

namespace gainlens::tokenizers {
namespace {

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
    return {std::move(result), from.at_start};
  }

 private:
  const icu::Normalizer2* normalizer_ = nullptr;  // owned by ICU
  std::string where_;
};

class Prepend : public Normalizer {
 public:
  explicit Prepend(std::string prefix) : prefix_(std::move(prefix)) {}
  NormalizedText apply(NormalizedText from) const override {
    if (!from.text.empty()) from.text.insert(0, prefix_);
    return from;
  }

 private:
  std::string prefix_;
};

/// Replaces every match of a pattern by a literal text. Strip and StripAccents use it with an empty text.
class Replace : public Normalizer {
 public:
  Replace(Pattern pattern, std::string content) : pattern_(std::move(pattern)), content_(std::move(content)) {}
  NormalizedText apply(NormalizedText from) const override {
    std::string result;
    bool at_start = from.at_start;
    result.reserve(from.text.size());
    for (const Span& span : pattern_.spans(from.text)) {
      if (span.matched && span.begin == 0 && span.end > 0 && content_.empty()) at_start = false;
      result += span.matched ? std::string_view(content_)
                             : std::string_view(from.text).substr(span.begin, span.end - span.begin);
    }
    return {std::move(result), at_start};
  }

 private:
  Pattern pattern_;
  std::string content_;
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
    return {std::move(result), from.at_start};
  }
};

class ByteLevel : public Normalizer {
 public:
  NormalizedText apply(NormalizedText from) const override {
    std::string result;
    append_byte_level(from.text, result);
    return {std::move(result), from.at_start};
  }
};

class Sequence : public Normalizer {
 public:
  explicit Sequence(std::vector<std::unique_ptr<Normalizer>> steps) : steps_(std::move(steps)) {}
  NormalizedText apply(NormalizedText from) const override {
    for (const auto& step : steps_) from = step->apply(std::move(from));
    return from;
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> steps_;
};

std::unique_ptr<Normalizer> make_strip(const JsonNode& node) {
  node.allow_only({"type", "strip_left", "strip_right"});
  const bool left = node.at("strip_left").boolean(), right = node.at("strip_right").boolean();
  if (!left && !right) return nullptr;
  const char* pattern = left && right ? R"(\A\s+|\s+\z)" : left ? R"(\A\s+)" : R"(\s+\z)";
  return std::make_unique<Replace>(Pattern::oniguruma(pattern, node.where()), "");
}

std::unique_ptr<Normalizer> make_sequence(const JsonNode& node) {
  node.allow_only({"type", "normalizers"});
  std::vector<std::unique_ptr<Normalizer>> steps;
  for (const JsonNode& item : node.at("normalizers").items()) {
    if (auto step = make_normalizer(item)) steps.push_back(std::move(step));
  }
  return std::make_unique<Sequence>(std::move(steps));
}

std::unique_ptr<Normalizer> make_plain(const JsonNode& node, const std::string& type) {
  node.allow_only({"type"});
  if (type == "NFC") return std::make_unique<UnicodeForm>(&icu::Normalizer2::getNFCInstance, node.where());
  if (type == "NFD") return std::make_unique<UnicodeForm>(&icu::Normalizer2::getNFDInstance, node.where());
  if (type == "NFKC") return std::make_unique<UnicodeForm>(&icu::Normalizer2::getNFKCInstance, node.where());
  if (type == "NFKD") return std::make_unique<UnicodeForm>(&icu::Normalizer2::getNFKDInstance, node.where());
  if (type == "Lowercase") return std::make_unique<Lowercase>();
  if (type == "StripAccents") return std::make_unique<Replace>(Pattern::oniguruma(R"(\p{M}+)", node.where()), "");
  if (type == "ByteLevel") return std::make_unique<ByteLevel>();
  node.unsupported(fmt::format("normalizer '{}'", printable(type)));
}

}  // namespace

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
    return std::make_unique<Replace>(read_pattern(node.at("pattern")), node.at("content").text());
  }
  return make_plain(node, type);
}

}  // namespace gainlens::tokenizers
