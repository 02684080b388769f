#include "tokenizers/sentencepiece_model.h"

#include <bit>
#include <cstdint>
#include <string_view>
#include <utility>

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

/// Reads the fields of a protobuf message one after the other.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : bytes_(bytes) {}

  /// Goes to the next field. False at the end, and where the bytes are not a message.
  bool next() {
    const auto tag = varint();
    if (!tag) return false;
    field_ = *tag >> 3;
    switch (*tag & 7) {
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
  std::uint64_t field() const { return field_; }
  std::uint64_t number() const { return number_; }
  std::string_view content() const { return content_; }

 private:
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
  std::uint64_t field_ = 0, number_ = 0;
};

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

SentencePieceFacts read_facts(std::string_view model) {
  SentencePieceFacts facts;
  // The defaults of the fields.
  bool suffix = false, removes_spaces = true, escapes = true, has_map = false;
  for (Fields fields(model); fields.next();) {
    Fields inner(fields.content());
    if (fields.field() == 2) {  // trainer_spec
      while (inner.next()) {
        if (inner.field() == 3) facts.algorithm = static_cast<SentencePieceFacts::Algorithm>(inner.number());
        if (inner.field() == 24) suffix = inner.number() != 0;  // treat_whitespace_as_suffix
        if (inner.field() == 35) facts.byte_fallback = inner.number() != 0;
      }
    } else if (fields.field() == 3) {  // normalizer_spec
      while (inner.next()) {
        if (inner.field() == 2) has_map = !inner.content().empty();
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
