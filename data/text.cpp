#include "data/text.h"

#include "core/check.h"
#include "core/json.h"
#include "core/utf8.h"
#include "formats/gzip.h"

namespace gainlens::data {
namespace {

constexpr std::uint64_t largest_id_file = std::uint64_t{1} << 30;

}  // namespace

std::string read_text(const std::filesystem::path& path, std::uint64_t most_bytes) {
  std::string text = formats::read_plain_or_gzip(path, most_bytes);
  const std::string where = printable(path.string());
  CHECK(!text.empty(), "{}: empty; give a text", where);
  const auto invalid = first_invalid_utf8(text);
  CHECK(!invalid, "{}: not UTF-8 at byte {}; convert it, for example with iconv -t UTF-8", where, *invalid);
  return text;
}

std::vector<tokenizers::TokenId> read_token_ids(const std::filesystem::path& path) {
  const std::string where = printable(path.string());
  const Json document = parse_json(formats::read_plain_or_gzip(path, largest_id_file), where);
  CHECK(document.is_array() && !document.empty(), "{}: {}; give one array of token ids, such as [1, 15, 7]", where,
        document.is_array() ? "an empty array" : std::string("JSON of type ") + document.type_name());
  std::vector<tokenizers::TokenId> ids;
  ids.reserve(document.size());
  for (const Json& item : document) {
    const bool fits = item.is_number_unsigned() && item.get<std::uint64_t>() <= std::uint64_t{INT32_MAX};
    CHECK(fits, "{}: item {} is {}; a token id is an integer from 0 to {}", where, ids.size(),
          printable(item.dump(), 40), INT32_MAX);
    ids.push_back(item.get<tokenizers::TokenId>());
  }
  return ids;
}

}  // namespace gainlens::data
