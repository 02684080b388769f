#include "core/atomic_file.h"
#include "core/check.h"
#include "core/checked.h"
#include "core/json.h"
#include "formats/dtype.h"
#include "formats/safetensors.h"
#include "formats/tensor_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>

namespace gainlens::formats {
namespace {

static_assert(std::endian::native == std::endian::little,
              "tensors are written as they lie in memory, and the format is little-endian");

/// JSON text must be UTF-8. nlohmann would throw only when the whole header is dumped, and would not say which name is
/// wrong.
void check_utf8(const std::string& text, const char* what, const std::string& where) {
  try {
    (void)Json(text).dump();
  } catch (const Json::type_error&) {
    throw_invalid("{}: {} '{}' is not UTF-8; rename it", where, what, printable(text));
  }
}

/// The tensors sorted by name, after checking each.
std::vector<const TensorToWrite*> in_order(const std::vector<TensorToWrite>& tensors, const std::string& where) {
  std::vector<const TensorToWrite*> order;
  for (const TensorToWrite& tensor : tensors) {
    const std::string what = fmt::format("{}: tensor '{}'", where, printable(tensor.name));
    ASSERT(elements_per_block(tensor.dtype) == 1, "{}: safetensors has no {}", what, name_of(tensor.dtype));
    CHECK(tensor.name != metadata_key, "{}: this name is reserved for the metadata; rename it", what);
    check_utf8(tensor.name, "tensor name", where);
    const std::size_t needed = bytes_for(tensor.shape, tensor.dtype, what);
    CHECK(tensor.bytes.size() == needed, "{}: {} bytes given; shape [{}] of {} needs {}", what, tensor.bytes.size(),
          fmt::join(tensor.shape, ", "), name_of(tensor.dtype), needed);
    order.push_back(&tensor);
  }
  std::sort(order.begin(), order.end(),
            [](const TensorToWrite* a, const TensorToWrite* b) { return a->name < b->name; });
  const auto twice = std::adjacent_find(
      order.begin(), order.end(), [](const TensorToWrite* a, const TensorToWrite* b) { return a->name == b->name; });
  if (twice != order.end())
    throw_invalid("{}: tensor '{}' is given twice; names must differ", where, printable((*twice)->name));
  return order;
}

/// The length, the JSON text, and spaces that make the data begin at a multiple of eight.
std::string header_of(const std::vector<const TensorToWrite*>& order,
                      const std::map<std::string, std::string>& metadata, const std::string& where) {
  OrderedJson json = OrderedJson::object();
  for (const auto& [key, value] : metadata) {
    check_utf8(key, "metadata key", where);
    check_utf8(value, "metadata value", where);
    json[std::string(metadata_key)][key] = value;
  }
  std::size_t offset = 0;
  for (const TensorToWrite* tensor : order) {
    const std::size_t end = checked_add(offset, tensor->bytes.size(), where);
    json[tensor->name] = {{"dtype", name_of(tensor->dtype)}, {"shape", tensor->shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = json.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  CHECK(text.size() <= max_header_bytes,
        "{}: names and metadata make a header of {} bytes; at most {} can be read back", where, text.size(),
        max_header_bytes);
  std::string length;
  for (std::size_t i = 0; i < header_length_bytes; ++i) length += static_cast<char>(text.size() >> (8 * i) & 0xff);
  return length + text;
}

}  // namespace

void write_tensors(const std::filesystem::path& path, const std::vector<TensorToWrite>& tensors,
                   const std::map<std::string, std::string>& metadata) {
  const std::string where = printable(path.string());
  const auto order = in_order(tensors, where);
  const std::string header = header_of(order, metadata, where);

  write_file_atomically(path, [&](OutputFile& file) {
    file.write(header);
    for (const TensorToWrite* tensor : order)
      file.write({reinterpret_cast<const char*>(tensor->bytes.data()), tensor->bytes.size()});
  });
}

}  // namespace gainlens::formats
