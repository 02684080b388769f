#include "golden/tokenized_copy.h"

#include "core/check.h"
#include "core/json.h"
#include "support/file_bytes.h"
#include "support/gguf_bytes.h"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace gainlens::golden {
namespace {

constexpr std::size_t alignment = 32;  // of the data in the GGUF goldens

/// Unknown, BOS, end, the space, letters, and names that no text has.
std::vector<std::string> tokens_of(std::int64_t vocabulary, const std::string& space) {
  std::vector<std::string> tokens = {"<unk>", "<s>", "</s>", space};
  for (char letter = 'A'; letter <= 'Z'; ++letter) tokens.emplace_back(1, letter);
  while (std::ssize(tokens) < vocabulary) tokens.push_back(fmt::format("<{}>", tokens.size()));
  ASSERT(std::ssize(tokens) == vocabulary, "tokenized_copy: {} ids are too few", vocabulary);
  return tokens;
}

Json tokenizer_json(std::int64_t vocabulary) {
  Json ids = Json::object();
  for (const std::string& token : tokens_of(vocabulary, " ")) ids[token] = ids.size();
  Json added = Json::array();
  for (int id = 0; id < 3; ++id)
    added.push_back(
        {{"id", id}, {"content", tokens_of(vocabulary, " ")[static_cast<std::size_t>(id)]}, {"special", true}});
  return {{"added_tokens", added},
          {"normalizer", nullptr},
          {"pre_tokenizer", nullptr},
          {"post_processor", nullptr},
          {"model", {{"type", "BPE"}, {"vocab", ids}, {"merges", Json::array()}}}};
}

/// Metadata of a GGUF file for the tokenizer, as many bytes as keep the data aligned behind them.
testing::GgufBytes vocabulary_metadata(std::int64_t vocabulary) {
  const std::vector<std::string> tokens = tokens_of(vocabulary, "\u2581");
  std::vector<float> scores;
  std::vector<std::int32_t> types;
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    scores.push_back(-static_cast<float>(id));
    types.push_back(id == 0 ? 2 : id < 3 ? 3 : 1);  // unknown, control, normal
  }
  const auto made = [&](const std::string& filler) {
    testing::GgufBytes metadata;
    metadata.add("tokenizer.ggml.model", "llama")
        .add_list("tokenizer.ggml.tokens", tokens)
        .add_list("tokenizer.ggml.scores", scores)
        .add_list("tokenizer.ggml.token_type", types)
        .add("tokenizer.ggml.unknown_token_id", std::uint32_t{0})
        .add("tokenizer.ggml.bos_token_id", std::uint32_t{1})
        .add("tokenizer.ggml.eos_token_id", std::uint32_t{tokenized_end})
        .add("tokenizer.ggml.add_bos_token", false)
        .add("general.filler", filler);
    return metadata;
  };
  constexpr std::size_t header = 24;
  const testing::GgufField last = made("").fields().back();
  return made(std::string(alignment - (last.offset + last.bytes - header) % alignment, '.'));
}

template <typename Number>
void add_to(std::string& bytes, std::size_t offset, Number more) {
  Number number = 0;
  bytes.copy(reinterpret_cast<char*>(&number), sizeof number, offset);
  number += more;
  bytes.replace(offset, sizeof number, reinterpret_cast<const char*>(&number), sizeof number);
}

/// The own keys of the tokenizer get names that nobody reads; the new ones stand in front of all.
std::string with_vocabulary(std::string file, std::int64_t vocabulary) {
  constexpr std::size_t header = 24, key_count = 16;
  constexpr std::string_view read = "tokenizer.ggml.", unread = "tokenizer.gone.";
  for (std::size_t at = file.find(read); at != std::string::npos; at = file.find(read, at))
    file.replace(at, read.size(), unread);
  const testing::GgufBytes metadata = vocabulary_metadata(vocabulary);
  const testing::GgufField last = metadata.fields().back();
  std::uint64_t keys = 0;
  metadata.bytes().copy(reinterpret_cast<char*>(&keys), sizeof keys, key_count);
  add_to(file, key_count, keys);
  return file.insert(header, metadata.bytes().substr(header, last.offset + last.bytes - header));
}

}  // namespace

std::filesystem::path tokenized_copy(const Golden& golden, std::int64_t vocabulary,
                                     const std::filesystem::path& folder) {
  if (golden.name.ends_with(".gguf")) {
    std::ifstream in(*golden.checkpoint, std::ios::binary);
    const std::string file(std::istreambuf_iterator<char>(in), {});
    const std::filesystem::path copy = folder / "model.gguf";
    std::filesystem::create_directory(folder);
    std::ofstream(copy, std::ios::binary) << with_vocabulary(file, vocabulary);
    return copy;
  }
  std::filesystem::copy(*golden.checkpoint, folder);
  testing::write_file(folder / "tokenizer.json", tokenizer_json(vocabulary).dump());
  testing::write_file(folder / "generation_config.json", Json{{"eos_token_id", tokenized_end}}.dump());
  return folder;
}

}  // namespace gainlens::golden
