#include "tokenizers/sentencepiece_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

namespace gainlens::tokenizers {
namespace {

/// One protobuf message, written field by field. The packages of SentencePiece have no headers of its messages, and a
/// second libprotobuf would clash with the copy inside libsentencepiece. So the five kinds of fields that are needed
/// are written here.
class Message {
 public:
  void number(std::uint32_t field, std::uint64_t value) {
    tag(field, 0);
    varint(value);
  }
  /// Protobuf writes a negative int32 as the ten bytes of its int64.
  void signed_number(std::uint32_t field, std::int32_t value) {
    number(field, static_cast<std::uint64_t>(std::int64_t{value}));
  }
  void boolean(std::uint32_t field, bool value) { number(field, value ? 1 : 0); }
  void float32(std::uint32_t field, float value) {
    tag(field, 5);
    const auto bits = std::bit_cast<std::uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) bytes_ += static_cast<char>(bits >> shift & 0xFF);
  }
  void bytes(std::uint32_t field, std::string_view value) {
    tag(field, 2);
    varint(value.size());
    bytes_ += value;
  }
  std::string take() { return std::move(bytes_); }

 private:
  void tag(std::uint32_t field, std::uint32_t wire_type) { varint(field << 3 | wire_type); }
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>((value & 0x7F) | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

/// The number in the first four bytes, or in as many as there are.
std::uint32_t little_endian(std::string_view bytes) {
  std::uint32_t number = 0;
  for (std::size_t i = 0; i < std::min<std::size_t>(4, bytes.size()); ++i)
    number |= std::uint32_t{static_cast<unsigned char>(bytes[i])} << 8 * i;
  return number;
}

/// Reads the fields of a protobuf message one after the other.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : bytes_(bytes) {}

  /// Goes to the next field. False at the end, and where the bytes are not a message.
  bool next() {
    content_ = {};
    number_ = 0;
    if (bytes_.empty()) return false;
    broken_ = true;
    const auto tag = varint();
    if (!tag || *tag > std::numeric_limits<std::uint32_t>::max()) return false;
    field_ = *tag >> 3;
    wire_type_ = *tag & 7;
    broken_ = !take_value(wire_type_);
    return !broken_;
  }
  /// Whether next() ended before the end of the bytes. Groups, which no model has, count as broken.
  bool broken() const { return broken_; }
  std::uint64_t field() const { return field_; }
  std::uint64_t number() const { return number_; }
  std::string_view content() const { return content_; }
  /// Whether the field holds bytes. The library passes over a field of another type than it expects.
  bool holds_bytes() const { return wire_type_ == 2; }
  bool holds_number() const { return wire_type_ == 0; }
  std::string_view rest() const { return bytes_; }

 private:
  bool take_value(std::uint64_t wire_type) {
    switch (wire_type) {
      case 0: {
        const auto value = varint();
        number_ = value.value_or(0);
        return value.has_value();
      }
      case 1:
        return take(8);
      case 2: {
        const auto size = varint();
        return size && take(*size);
      }
      case 5:
        return take(4);
      default:
        return false;
    }
  }
  std::optional<std::uint64_t> varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && !bytes_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes_.front());
      bytes_.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }
  bool take(std::uint64_t size) {
    if (size > bytes_.size()) return false;
    content_ = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return true;
  }

  std::string_view bytes_, content_;
  std::uint64_t field_ = 0, number_ = 0, wire_type_ = 0;
  bool broken_ = false;
};

/// A double array as darts-clone stores it: one unit of 32 bits for each node, in which a walk along the bytes of a
/// text goes from place to place. The library walks without looking at the size.
class DoubleArray {
 public:
  explicit DoubleArray(std::string_view bytes) : bytes_(bytes), max_leaves_(bytes.size() / 4, -1) {}

  /// @param values  the values of the leaves are below it
  /// @param max_prefixes  of one text that the array may hold: the library has room for so many
  bool is_sound(std::size_t values, int max_prefixes) {
    if (max_leaves_.empty()) return false;
    std::vector<std::uint32_t> to_do;
    const auto visit = [&](std::uint32_t place, int leaves) {
      if (leaves <= max_leaves_[place]) return;
      max_leaves_[place] = leaves;
      to_do.push_back(place);
    };
    visit(0, 0);
    while (!to_do.empty()) {
      const std::uint32_t place = to_do.back(), unit = at(place), children = place ^ offset(unit);
      to_do.pop_back();
      if ((children | 0xFF) >= max_leaves_.size()) return false;
      int leaves = max_leaves_[place];
      if ((unit >> 8 & 1) != 0) {
        if ((at(children) & ~leaf) >= values || ++leaves > max_prefixes) return false;
      }
      for (std::uint32_t label = 0; label < 256; ++label) {
        if ((at(children ^ label) & (leaf | 0xFF)) == label) visit(children ^ label, leaves);
      }
    }
    return true;
  }

 private:
  static constexpr std::uint32_t leaf = std::uint32_t{1} << 31;

  static std::uint32_t offset(std::uint32_t unit) { return unit >> 10 << ((unit & 0x200) >> 6); }
  std::uint32_t at(std::uint32_t place) const { return little_endian(bytes_.substr(std::size_t{4} * place)); }

  std::string_view bytes_;
  std::vector<int> max_leaves_;  ///< [place] on a way to it; -1: none was found
};

/// Whether the library can use this map of characters without leaving it: the size of a double array, the array, and
/// texts that end with zeros, at whose places the leaves point.
bool is_sound_map(std::string_view map) {
  constexpr int max_prefixes = 32;  // kMaxTrieResultsSize of SentencePiece's normalizer.h
  if (map.empty()) return true;
  if (map.size() < 8) return false;
  const std::size_t size = little_endian(map);
  if (size % 4 != 0 || size > map.size() - 4) return false;
  const std::string_view texts = map.substr(4 + size);
  return (texts.empty() || texts.back() == '\0') &&
         DoubleArray(map.substr(4, size)).is_sound(texts.size(), max_prefixes);
}

/// The most texts of which each is the start of the next.
std::size_t longest_chain(std::vector<std::string_view> texts) {
  std::ranges::sort(texts);
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  std::vector<std::string_view> chain;
  std::size_t longest = 0;
  for (const std::string_view text : texts) {
    while (!chain.empty() && !text.starts_with(chain.back())) chain.pop_back();
    chain.push_back(text);
    longest = std::max(longest, chain.size());
  }
  return longest;
}

std::string piece_message(const Piece& piece) {
  Message message;
  message.bytes(1, piece.text);
  message.float32(2, piece.score);
  message.number(3, static_cast<std::uint64_t>(piece.type));
  return message.take();
}

std::string trainer_message(const SentencePieceModel& model) {
  constexpr std::uint64_t bpe = 2;
  Message message;
  message.number(3, bpe);
  message.number(4, model.pieces.size());
  message.boolean(35, model.byte_fallback);
  // Fields 40 to 43 are the ids, 45 to 48 the pieces that they stand for. An absent id is -1. Its piece keeps the
  // default name, which is not found.
  const std::optional<TokenId> ids[] = {model.unknown, model.bos, model.eos, model.padding};
  for (std::uint32_t i = 0; i < 4; ++i) {
    message.signed_number(40 + i, ids[i].value_or(-1));
    if (ids[i]) message.bytes(45 + i, model.pieces.at(static_cast<std::size_t>(*ids[i])).text);
  }
  return message.take();
}

std::string normalizer_message(const SentencePieceModel& model) {
  Message message;
  message.bytes(1, "identity");
  message.bytes(2, "");
  message.boolean(3, model.add_dummy_prefix);
  message.boolean(4, model.remove_extra_whitespaces);
  message.boolean(5, true);  // escape_whitespaces: spaces become U+2581
  return message.take();
}

}  // namespace

std::string fault_of(std::string_view model) {
  constexpr std::uint64_t pieces = 1, normalizer = 3, denormalizer = 5;
  constexpr std::size_t max_fields = std::size_t{1} << 23;  // the largest vocabularies have 2^20
  constexpr std::size_t max_in_a_row = 64;                  // kResultSize of SentencePiece's normalizer.cc
  std::vector<std::string_view> user_defined;
  std::size_t count = 0;
  Fields fields(model);
  while (fields.next() && ++count <= max_fields) {
    Fields inner(fields.content());
    std::string_view text;
    bool own = false;
    while (inner.next() && ++count <= max_fields) {
      if (fields.field() == pieces && inner.field() == 1 && inner.holds_bytes()) text = inner.content();
      if (fields.field() == pieces && inner.field() == 3)
        own = own || static_cast<std::uint32_t>(inner.number()) == std::uint32_t{4};  // PieceType::user_defined
      if ((fields.field() == normalizer || fields.field() == denormalizer) && inner.field() == 2 &&
          !is_sound_map(inner.content()))
        return "its map of characters is damaged";
    }
    if (inner.broken()) return "one of its parts is damaged";
    if (own) user_defined.push_back(text);
  }
  if (count > max_fields) return fmt::format("it has more than {} fields", max_fields);
  if (fields.broken()) return "it is no message of protobuf, or is truncated";
  if (longest_chain(user_defined) > max_in_a_row)
    return fmt::format("more than {} of its own pieces begin with each other", max_in_a_row);
  return "";
}

std::string without_self_test(std::string_view model) {
  constexpr std::uint64_t self_test = 4;
  std::string others;
  std::string_view rest = model;
  for (Fields fields(model); fields.next(); rest = fields.rest())
    if (fields.field() != self_test) others += rest.substr(0, rest.size() - fields.rest().size());
  return others;
}

SentencePieceFacts read_facts(std::string_view model) {
  SentencePieceFacts facts;
  // The defaults of the fields.
  bool suffix = false, removes_spaces = true, escapes = true, has_map = false;
  for (Fields fields(model); fields.next();) {
    Fields inner(fields.content());
    if (fields.field() == 2) {  // trainer_spec
      while (inner.next()) {
        if (!inner.holds_number()) continue;
        if (inner.field() == 3) facts.algorithm = static_cast<SentencePieceFacts::Algorithm>(inner.number());
        if (inner.field() == 24) suffix = inner.number() != 0;  // treat_whitespace_as_suffix
        if (inner.field() == 35) facts.byte_fallback = inner.number() != 0;
      }
    } else if (fields.field() == 3) {  // normalizer_spec
      while (inner.next()) {
        if (inner.field() == 2 && inner.holds_bytes()) has_map = !inner.content().empty();
        if (!inner.holds_number()) continue;
        if (inner.field() == 4) removes_spaces = inner.number() != 0;
        if (inner.field() == 5) escapes = inner.number() != 0;
      }
    }
  }
  facts.plain = !suffix && !removes_spaces && escapes && !has_map;
  return facts;
}

std::string serialise(const SentencePieceModel& model) {
  Message message;
  for (const Piece& piece : model.pieces) message.bytes(1, piece_message(piece));
  message.bytes(2, trainer_message(model));
  message.bytes(3, normalizer_message(model));
  return message.take();
}

}  // namespace gainlens::tokenizers
