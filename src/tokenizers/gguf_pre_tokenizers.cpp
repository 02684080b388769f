#include "tokenizers/gguf_pre_tokenizers.h"

#include "core/error.h"
#include "core/json.h"
#include "core/nearest.h"

#include <fmt/ranges.h>

#include <algorithm>

namespace gainlens::tokenizers {
namespace {

// The parts of pre-tokenizers, as tokenizer.json writes them.
Json split(std::string_view pattern) {
  return {{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}};
}
Json digits(bool individual) {
  return {{"type", "Digits"}, {"individual_digits", individual}};
}
Json byte_level(bool with_pattern) {
  return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", with_pattern}};
}
Json sequence(std::vector<Json> steps) {
  return {{"type", "Sequence"}, {"pretokenizers", std::move(steps)}};
}
Json by_pattern(std::string_view pattern) {
  return sequence({split(pattern), byte_level(false)});
}

// cl100k and o200k are tiktoken's cl100k_base and o200k_base. Llama 3 and others use cl100k too; qwen2 differs from it
// by single digits. o200k cuts words at capital letters.
constexpr std::string_view cl100k =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view qwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view o200k =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view tekken = R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
                                    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|)"
                                    R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view bloom = R"( ?[^(\s|.,!?\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c)]+)";

// The letters of deepseek-llm are those with upper and lower case in an older version of Unicode, written out.
constexpr std::string_view deepseek_llm_words =
    R"(\s?[A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf\u01c4-\u0293\u0295-\u02af)"
    R"(\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5)"
    R"(\u03f7-\u0481\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd\u1c90-\u1cba\u1cbd-\u1cbf)"
    R"(\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57)"
    R"(\u1f59\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4\u1fc6-\u1fcc\u1fd0-\u1fd3)"
    R"(\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124)"
    R"(\u2126\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149\u214e\u2183\u2184\u2c00-\u2c7b)"
    R"(\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e)"
    R"(\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a\x{10400}-\x{1044f}\x{104b0}-\x{104d3})"
    R"(\x{104d8}-\x{104fb}\x{10c80}-\x{10cb2}\x{10cc0}-\x{10cf2}\x{118a0}-\x{118df}\x{1e900}-\x{1e943}]+)";
constexpr std::string_view deepseek_llm_signs = R"(\s?[!-/:-~\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f\u3000-\u3002]+)";
constexpr std::string_view deepseek_cjk = R"([\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+)";
constexpr std::string_view deepseek_v3_words =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|)"
    R"( ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

struct Entry {
  std::vector<std::string> names;
  const char* normal_form;  ///< null: the text is not normalised
  Json pre_tokenizer;
  bool ignore_merges = false;
  std::optional<bool> adds_bos = false;
};

/// The names are those that GGUF converters write. A name is listed only if the parts of its tokenizer are known; a
/// similar tokenizer is not enough. The normal forms are those of the models. llama.cpp does not apply them, so it
/// differs on text that is not in that form. Where the files of a name usually say whether a BOS is put first, and
/// llama.cpp and the models' own tokenizers differ if they do not, `adds_bos` is left open.
std::vector<Entry> entries() {
  const Json gpt2 = byte_level(true);
  const Json single_digits = sequence({digits(true), byte_level(true)});
  const Json falcon = sequence({{{"type", "Punctuation"}, {"behavior", "Contiguous"}},
                                byte_level(true),
                                digits(false),
                                split("[0-9][0-9][0-9]")});
  const Json deepseek_coder = sequence({split(R"([\r\n])"), split(R"(\s?\p{L}+)"), split(R"(\s?\p{P}+)"),
                                        split(deepseek_cjk), digits(true), byte_level(false)});
  const Json deepseek_llm = sequence({split(R"([\r\n])"), split(deepseek_llm_words), split(deepseek_llm_signs),
                                      split(R"(\s+$)"), split(deepseek_cjk), digits(true), byte_level(false)});
  const Json deepseek_v3 = sequence({split(R"(\p{N}{1,3})"), split(R"([\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+)"),
                                     split(deepseek_v3_words), byte_level(false)});
  return {
      {{"gpt-2", "phi-2"}, nullptr, gpt2},
      {{"mpt", "olmo"}, "NFC", gpt2},  // GPT-NeoX's, also Pythia's
      {{"smollm", "starcoder"}, nullptr, single_digits},
      {{"command-r"}, "NFC", single_digits},
      {{"llama-bpe", "llama3", "llama-v3"}, nullptr, by_pattern(cl100k), true, true},
      // As in the published tokenizer.json of Pixtral 12B. Mistral's own software cuts words as tekken.
      {{"pixtral"}, nullptr, by_pattern(cl100k), true, true},
      {{"dbrx"}, nullptr, by_pattern(cl100k)},  // also OLMo 2's
      {{"smaug-bpe"}, nullptr, by_pattern(cl100k), false, std::nullopt},
      {{"qwen2", "stablelm2"}, "NFC", by_pattern(qwen2)},
      {{"deepseek-r1-qwen"}, "NFC", by_pattern(qwen2), false, std::nullopt},
      {{"gpt-4o"}, nullptr, by_pattern(o200k)},  // also gpt-oss's
      {{"llama4"}, nullptr, by_pattern(o200k), true, std::nullopt},
      {{"tekken"}, nullptr, by_pattern(tekken), true, true},
      {{"falcon"}, nullptr, falcon},
      {{"bloom"}, nullptr, by_pattern(bloom)},
      {{"deepseek-coder"}, nullptr, deepseek_coder},
      {{"deepseek-llm"}, nullptr, deepseek_llm, false, std::nullopt},
      {{"deepseek-v3"}, nullptr, deepseek_v3, false, std::nullopt},
  };
}

[[noreturn]] void refuse(std::string_view name, std::string_view where) {
  const std::vector<std::string> names = gguf_pre_tokenizer_names();
  throw_invalid("{}: tokenizer.ggml.pre '{}' {}; known are {}{}", where, printable(name),
                name == "default" ? "is not the pattern of any model" : "is not known", fmt::join(names, ", "),
                did_you_mean(name, names));
}

}  // namespace

std::vector<std::string> gguf_pre_tokenizer_names() {
  std::vector<std::string> names;
  for (const Entry& entry : entries()) names.insert(names.end(), entry.names.begin(), entry.names.end());
  std::sort(names.begin(), names.end());
  return names;
}

GgufPreTokenizer make_gguf_pre_tokenizer(std::string_view name, std::string_view where) {
  const std::vector<Entry> known = entries();
  const auto entry = std::find_if(known.begin(), known.end(), [&](const Entry& candidate) {
    return std::find(candidate.names.begin(), candidate.names.end(), name) != candidate.names.end();
  });
  if (entry == known.end()) refuse(name, where);
  const std::string part = fmt::format("{}: tokenizer.ggml.pre '{}'", where, name);
  GgufPreTokenizer result;
  if (entry->normal_form != nullptr)
    result.normalizer = make_normalizer(JsonNode(Json{{"type", entry->normal_form}}, part));
  result.pre_tokenizer = make_pre_tokenizer(JsonNode(entry->pre_tokenizer, part));
  result.ignore_merges = entry->ignore_merges;
  result.adds_bos = entry->adds_bos;
  return result;
}

}  // namespace gainlens::tokenizers
