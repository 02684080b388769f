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

struct Entry {
  std::vector<std::string> names;
  const char* normal_form;  ///< null: the text is not normalised
  Json pre_tokenizer;
  bool ignore_merges = false;
  bool adds_bos = false;
};

/// The names are those that GGUF converters write. A name is listed only if the parts of its tokenizer are known; a
/// similar tokenizer is not enough. The normal forms are those of the models. llama.cpp does not apply them, so it
/// differs on text that is not in that form.
std::vector<Entry> entries() {
  const Json gpt2 = byte_level(true);
  const Json single_digits = sequence({digits(true), byte_level(true)});
  const Json falcon = sequence({{{"type", "Punctuation"}, {"behavior", "Contiguous"}},
                                byte_level(true),
                                digits(false),
                                split("[0-9][0-9][0-9]")});
  const Json deepseek_coder =
      sequence({split(R"([\r\n])"), split(R"(\s?\p{L}+)"), split(R"(\s?\p{P}+)"),
                split(R"([\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+)"), digits(true), byte_level(false)});
  return {
      {{"gpt-2", "phi-2"}, nullptr, gpt2},
      {{"mpt", "olmo"}, "NFC", gpt2},  // GPT-NeoX's, also Pythia's
      {{"smollm", "starcoder"}, nullptr, single_digits},
      {{"command-r"}, "NFC", single_digits},
      {{"llama-bpe", "llama3", "llama-v3"}, nullptr, by_pattern(cl100k), true, true},
      {{"dbrx"}, nullptr, by_pattern(cl100k)},  // also OLMo 2's
      {{"qwen2", "stablelm2"}, "NFC", by_pattern(qwen2)},
      {{"gpt-4o"}, nullptr, by_pattern(o200k)},  // also gpt-oss's
      {{"tekken"}, nullptr, by_pattern(tekken), true, true},
      {{"falcon"}, nullptr, falcon},
      {{"bloom"}, nullptr, by_pattern(bloom)},
      {{"deepseek-coder"}, nullptr, deepseek_coder},
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
