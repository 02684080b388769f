#pragma once

#include "formats/gguf_file.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace gainlens::testing {

/// The numbers that GGUF files give to tensor types.
enum class GgmlType : std::uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q2_k = 10,
  q3_k = 11,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  iq4_nl = 20,
  iq3_s = 21,
  iq4_xs = 23,
  i32 = 26,
  bf16 = 30,
  mxfp4 = 39,
};

/// The place of a field in the header, for tests that corrupt it.
struct GgufField {
  std::string name;  ///< "version", "key 'a': value", "tensor 'w': offset"
  std::size_t offset;
  std::size_t bytes;
};

/// A small GGUF file by hand:
///
///   GgufBytes gguf;
///   gguf.add("general.architecture", "llama").add("llama.block_count", 2u).add_list("tokenizer.ggml.tokens", texts);
///   gguf.tensor("token_embd.weight", {5, 4}, values);  // row-major: the file stores the sizes in reverse
///   gguf.write(folder.path() / "model.gguf");
///
/// The C++ type of a value determines its kind: std::uint32_t (2u) gives u32, int i32, float f32, bool boolean, and so
/// on. Works only on little-endian hosts.
class GgufBytes {
 public:
  explicit GgufBytes(std::uint32_t version = 3, std::size_t alignment = 32)
      : version_(version), alignment_(alignment) {}

  template <typename Value>
  GgufBytes& add(const std::string& key, const Value& value) {
    ++keys_;
    begin_key(key);
    if constexpr (std::is_arithmetic_v<Value>) {
      field_of(pairs_, "kind", static_cast<std::uint32_t>(kind_of<Value>()));
      field_of(pairs_, "value", value);
    } else {
      field_of(pairs_, "kind", std::uint32_t{8});
      text_of(pairs_, "value", std::string_view(value));
    }
    return *this;
  }

  /// Adds an array; an array of texts if the elements are strings.
  template <typename Value>
  GgufBytes& add_list(const std::string& key, const std::vector<Value>& values) {
    ++keys_;
    begin_key(key);
    field_of(pairs_, "kind", std::uint32_t{9});
    if constexpr (std::is_arithmetic_v<Value>) {
      field_of(pairs_, "element kind", static_cast<std::uint32_t>(kind_of<Value>()));
    } else {
      field_of(pairs_, "element kind", std::uint32_t{8});
    }
    field_of(pairs_, "count", std::uint64_t{values.size()});
    for (const auto& value : values) {
      if constexpr (std::is_arithmetic_v<Value>) {
        field_of(pairs_, "element", value);
      } else {
        text_of(pairs_, "element", value);
      }
    }
    return *this;
  }

  /// @param shape  row-major, in elements
  /// @param bytes  the bytes as stored, in blocks for block types; not checked against the shape
  GgufBytes& tensor(const std::string& name, GgmlType type, const std::vector<std::uint64_t>& shape,
                    const std::string& bytes) {
    ++tensors_;
    subject_ = "tensor '" + name + "': ";
    text_of(infos_, "name", name);
    field_of(infos_, "dimensions", static_cast<std::uint32_t>(shape.size()));
    for (std::size_t i = shape.size(); i-- > 0;) field_of(infos_, "size", shape[i]);
    field_of(infos_, "type", static_cast<std::uint32_t>(type));
    field_of(infos_, "offset", std::uint64_t{data_.size()});
    data_ += bytes;
    data_.resize((data_.size() + alignment_ - 1) / alignment_ * alignment_);
    return *this;
  }

  /// Adds a float32 tensor.
  GgufBytes& tensor(const std::string& name, const std::vector<std::uint64_t>& shape,
                    const std::vector<float>& values) {
    return tensor(name, GgmlType::f32, shape,
                  std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)));
  }

  /// The bytes of the whole file. general.alignment is written only if it was added.
  std::string bytes() const {
    std::string file = header().bytes + pairs_.bytes + infos_.bytes;
    file.resize((file.size() + alignment_ - 1) / alignment_ * alignment_);
    return file + data_;
  }

  /// Every field from the first byte to the data, in order and without gaps.
  std::vector<GgufField> fields() const {
    std::vector<GgufField> all;
    std::size_t begin = 0;
    for (const Section& section : {header(), pairs_, infos_}) {
      for (GgufField field : section.fields) {
        field.offset += begin;
        all.push_back(field);
      }
      begin += section.bytes.size();
    }
    return all;
  }

  std::filesystem::path write(const std::filesystem::path& path) const {
    std::ofstream(path, std::ios::binary) << bytes();
    return path;
  }

 private:
  struct Section {
    std::string bytes;
    std::vector<GgufField> fields;  // offsets within the section
  };

  template <typename Value>
  static constexpr formats::GgufKind kind_of() {
    using formats::GgufKind;
    if constexpr (std::is_same_v<Value, bool>) return GgufKind::boolean;
    if constexpr (std::is_same_v<Value, float>) return GgufKind::f32;
    if constexpr (std::is_same_v<Value, double>) return GgufKind::f64;
    constexpr bool is_signed = std::is_signed_v<Value>;
    if constexpr (sizeof(Value) == 1) return is_signed ? GgufKind::i8 : GgufKind::u8;
    if constexpr (sizeof(Value) == 2) return is_signed ? GgufKind::i16 : GgufKind::u16;
    if constexpr (sizeof(Value) == 4) return is_signed ? GgufKind::i32 : GgufKind::u32;
    return is_signed ? GgufKind::i64 : GgufKind::u64;
  }

  void begin_key(const std::string& key) {
    subject_ = "key '" + key + "': ";
    text_of(pairs_, "name", key);
  }

  void raw(Section& section, const std::string& name, std::string_view content) const {
    section.fields.push_back({subject_ + name, section.bytes.size(), content.size()});
    section.bytes += content;
  }

  template <typename Value>
  void field_of(Section& section, const std::string& name, Value value) const {
    raw(section, name, {reinterpret_cast<const char*>(&value), sizeof(Value)});
  }

  void text_of(Section& section, const std::string& name, std::string_view text) const {
    field_of(section, name + " length", std::uint64_t{text.size()});
    raw(section, name, text);
  }

  Section header() const {
    GgufBytes plain;  // no subject
    Section section;
    plain.raw(section, "magic", "GGUF");
    plain.field_of(section, "version", version_);
    plain.field_of(section, "tensor count", tensors_);
    plain.field_of(section, "key count", keys_);
    return section;
  }

  std::uint32_t version_;
  std::size_t alignment_;
  std::uint64_t keys_ = 0, tensors_ = 0;
  std::string subject_;
  Section pairs_, infos_;
  std::string data_;
};

}  // namespace gainlens::testing
