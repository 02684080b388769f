#include "data/text.h"

#include "core/check.h"
#include "core/json.h"
#include "core/quantity.h"
#include "core/utf8.h"

namespace gainlens::data {
namespace {

constexpr std::uint64_t largest_id_file = std::uint64_t{1} << 30;
constexpr std::size_t part_bytes = std::size_t{256} << 10;
constexpr std::size_t longest_character = 4;  // bytes of UTF-8

}  // namespace

TextReader::TextReader(const std::filesystem::path& path, std::uint64_t max_bytes)
    : file_(path, formats::UnpackedFile::Accepts::files_and_pipes), max_bytes_(max_bytes) {}

std::string_view TextReader::next() {
  part_.erase(0, handed_out_);
  const std::size_t carried = part_.size();
  const std::uint64_t begin = file_.position() - carried;  // of part_ in the text
  const bool at_end = file_.append_to(part_, part_bytes) == 0;
  CHECK(file_.position() > 0, "{}: empty; give a text", where());
  CHECK(file_.position() <= max_bytes_, "{}: larger than {} unpacked; give a smaller file", where(),
        format_bytes(max_bytes_));
  handed_out_ = part_.size();
  if (const auto invalid = first_invalid_utf8(part_)) {
    // The end of this part may lie within a character. The next part then shows whether it is one.
    CHECK(!at_end && part_.size() - *invalid < longest_character,
          "{}: not UTF-8 at byte {}; convert it, for example with iconv -t UTF-8", where(), begin + *invalid);
    handed_out_ = *invalid;
    if (handed_out_ == 0) return next();
  }
  const std::string_view whole = std::string_view(part_).substr(0, handed_out_);
  hash_.update(whole);
  return whole;
}

std::string TextReader::sha256() {
  return hash_.hex();
}

std::string read_text(const std::filesystem::path& path, std::uint64_t max_bytes,
                      formats::UnpackedFile::Accepts accepts) {
  std::string text = formats::read_plain_or_gzip(path, max_bytes, accepts);
  const std::string where = printable(path.string());
  CHECK(!text.empty(), "{}: empty; give a text", where);
  const auto invalid = first_invalid_utf8(text);
  CHECK(!invalid, "{}: not UTF-8 at byte {}; convert it, for example with iconv -t UTF-8", where, *invalid);
  return text;
}

std::vector<tokenizers::TokenId> read_token_ids(const std::filesystem::path& path) {
  const std::string where = printable(path.string());
  const Json document = parse_json(
      formats::read_plain_or_gzip(path, largest_id_file, formats::UnpackedFile::Accepts::files_and_pipes), where);
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
