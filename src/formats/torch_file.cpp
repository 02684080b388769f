#include "formats/torch_file.h"

#include "core/check.h"
#include "core/checked.h"
#include "formats/mapped_file.h"
#include "formats/pickle.h"
#include "formats/safetensors.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace gainlens::formats {
namespace {

constexpr std::string_view pickle_name = "data.pkl";

/// The types of torch's storages, as pickles name them.
constexpr std::array<std::pair<std::string_view, DType>, 10> storages = {{{"torch.DoubleStorage", DType::f64},
                                                                          {"torch.FloatStorage", DType::f32},
                                                                          {"torch.HalfStorage", DType::f16},
                                                                          {"torch.BFloat16Storage", DType::bf16},
                                                                          {"torch.LongStorage", DType::i64},
                                                                          {"torch.IntStorage", DType::i32},
                                                                          {"torch.ShortStorage", DType::i16},
                                                                          {"torch.CharStorage", DType::i8},
                                                                          {"torch.ByteStorage", DType::u8},
                                                                          {"torch.BoolStorage", DType::boolean}}};

/// The folder that all entries lie in, which torch.save names after the file.
std::string folder_of(const ZipArchive& archive) {
  for (const auto& [name, bytes] : archive.entries()) {
    const std::size_t slash = name.find('/');
    if (slash != std::string::npos && name.substr(slash + 1) == pickle_name) return name.substr(0, slash + 1);
  }
  throw_invalid("{}: a zip archive without '{}'; not a checkpoint of torch.save", archive.where(), pickle_name);
}

/// Refuses what is no zip archive with what it is.
void check_is_archive(const std::filesystem::path& path) {
  const auto file = MappedFile::open(path);
  const auto bytes = file->bytes();
  const std::string where = printable(path.string());
  const bool archive = bytes.size() >= 2 && bytes[0] == std::byte{'P'} && bytes[1] == std::byte{'K'};
  CHECK(archive || !looks_pickled(bytes),
        "{}: in the format of PyTorch before 1.6, which is not read; save it again with a newer one: torch.save("
        "torch.load(FILE, weights_only=True), FILE)",
        where);
  CHECK(archive, "{}: not a checkpoint of torch.save, which is a zip archive", where);
}

/// Whether elements lie row by row without gaps.
bool is_contiguous(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& stride,
                   const std::string& what) {
  std::int64_t expected = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && stride[i] != expected) return false;
    expected = checked_mul(expected, shape[i], what + ": its size");
  }
  return true;
}

}  // namespace

TorchFile TorchFile::open(const std::filesystem::path& path) {
  check_is_archive(path);
  TorchFile file;
  file.archive_ = ZipArchive::open(path);
  file.folder_ = folder_of(file.archive_);
  const std::string order_name = file.folder_ + "byteorder";
  if (file.archive_.entries().contains(order_name)) {
    const auto bytes = file.archive_.at(order_name);
    const std::string_view order(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    CHECK(order == "little", "{}: byte order '{}'; 'little' is read", file.where(), printable(order, 20));
  }
  file.content_ = PickleData::parse(file.archive_.at(file.folder_ + std::string(pickle_name)),
                                    fmt::format("{}: {}", file.where(), pickle_name));
  file.archive_.file()->check_still_whole();
  return file;
}

TorchFile::Tensors TorchFile::tensors(PickleId dictionary, std::string_view what) const {
  const auto pairs = content_.dictionary(dictionary);
  CHECK(pairs.has_value(), "{}: {} is {}; must be a dictionary of tensors", where(), what,
        content_.description(dictionary));
  Tensors found;
  for (std::size_t i = 0; i < pairs->size(); i += 2) {
    const PickleNode& key = content_.at((*pairs)[i]);
    CHECK(key.kind == PickleKind::text, "{}: {} has the key {}; must be the name of a tensor", where(), what,
          content_.description((*pairs)[i]));
    const std::string of = fmt::format("{}: '{}'", where(), printable(key.text, 100));
    CHECK(found.emplace(key.text, tensor((*pairs)[i + 1], key.text, of)).second, "{}: is there twice", of);
  }
  return found;
}

TensorEntry TorchFile::tensor(PickleId id, const std::string& name, const std::string& what) const {
  auto arguments = content_.arguments(id);
  if (content_.class_of(id) == "torch._utils._rebuild_parameter" && !arguments.empty()) {
    id = arguments[0];
    arguments = content_.arguments(id);
  }
  // _rebuild_tensor_v2(storage, offset, size, stride, requires_grad, backward_hooks, metadata)
  CHECK(content_.class_of(id) == "torch._utils._rebuild_tensor_v2" && arguments.size() >= 6,
        "{}: is {}; must be a tensor of an ordinary type", what, content_.description(id));
  TensorEntry entry;
  entry.name = name;
  const auto bytes = storage(arguments[0], entry.dtype, what);
  const auto offset = checked_cast<std::uint64_t>(whole(arguments[1], what), what + ": its offset");
  std::vector<std::int64_t> stride;
  for (const auto& [from, to] : {std::pair(arguments[2], &entry.shape), std::pair(arguments[3], &stride)}) {
    const PickleNode& numbers = content_.at(from);
    CHECK(numbers.kind == PickleKind::tuple, "{}: its shape is {}; must be a tuple", what, content_.description(from));
    CHECK(numbers.parts.size() <= max_rank, "{}: {} dimensions; at most {} are allowed", what, numbers.parts.size(),
          max_rank);
    for (const PickleId number : numbers.parts) to->push_back(whole(number, what));
  }
  CHECK(stride.size() == entry.shape.size(), "{}: {} strides for {} dimensions", what, stride.size(),
        entry.shape.size());
  const std::uint64_t needed = bytes_for(entry.shape, entry.dtype, what);
  CHECK(needed == 0 || is_contiguous(entry.shape, stride, what),
        "{}: is stored with strides [{}]; save it with .contiguous()", what, fmt::join(stride, ", "));
  const std::uint64_t begin = checked_mul<std::uint64_t>(offset, bytes_per_element(entry.dtype), what + ": its offset");
  CHECK(begin <= bytes.size() && needed <= bytes.size() - begin,
        "{}: needs {} bytes from byte {} on; its storage has {}, the file is damaged", what, needed, begin,
        bytes.size());
  entry.bytes = bytes.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(needed));
  entry.file = archive_.file();
  return entry;
}

std::span<const std::byte> TorchFile::storage(PickleId reference, DType& dtype, const std::string& what) const {
  const PickleNode& node = content_.at(reference);
  CHECK(node.kind == PickleKind::reference, "{}: its storage is {}; the file is damaged", what,
        content_.description(reference));
  // ('storage', class, key, device, number of elements)
  const PickleNode& id = content_.at(node.parts[0]);
  CHECK(id.kind == PickleKind::tuple && id.parts.size() == 5, "{}: its storage has an unknown id; the file is damaged",
        what);
  const PickleNode &type = content_.at(id.parts[1]), &key = content_.at(id.parts[2]);
  CHECK(type.kind == PickleKind::global && key.kind == PickleKind::text,
        "{}: its storage has an unknown id; the file is damaged", what);
  const auto known = std::ranges::find(storages, type.text, &std::pair<std::string_view, DType>::first);
  CHECK(known != storages.end(), "{}: holds '{}', a type that is not read", what, printable(type.text, 60));
  dtype = known->second;
  return archive_.at(fmt::format("{}data/{}", folder_, key.text));
}

std::int64_t TorchFile::whole(PickleId id, const std::string& what) const {
  const PickleNode& node = content_.at(id);
  CHECK(node.kind == PickleKind::integer && node.integer >= 0,
        "{}: its shape or place has {}; must be whole numbers from 0", what, content_.description(id));
  return node.integer;
}

}  // namespace gainlens::formats
