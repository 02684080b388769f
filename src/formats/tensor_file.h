#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gainlens::formats {

class MappedFile;

/// Element types of tensors on disk. The types from q8_0 on store blocks of several elements that share scales; only
/// GGUF files have them. F8_E4M3 has scales in another tensor (scaled_values.h).
enum class DType {
  f64,
  f32,
  f16,
  bf16,
  f8_e4m3,
  i64,
  i32,
  i16,
  i8,
  u8,
  boolean,
  q8_0,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q2_k,
  q3_k,
  q4_k,
  q5_k,
  q6_k,
  iq4_nl,
  iq4_xs,
  mxfp4
};

std::string_view name_of(DType dtype);  ///< as safetensors and GGUF write it: "F32", "Q4_K"
/// @throws InternalError  the dtype stores blocks: one element has no bytes of its own
std::size_t bytes_per_element(DType dtype);
std::size_t elements_per_block(DType dtype);  ///< 1 for plain types
std::size_t bytes_per_block(DType dtype);     ///< an element's bytes for plain types

/// One tensor. Its bytes stay in the mapped file, which `file` keeps mapped.
struct TensorEntry {
  std::string name;
  DType dtype{};
  std::vector<std::int64_t> shape;
  /// Little-endian, row-major, possibly unaligned. Blocks run along the last dimension.
  std::span<const std::byte> bytes;
  std::shared_ptr<const MappedFile> file;  ///< the bytes lie in it; null for bytes in memory
};

/// Call it before and after reading an entry's bytes. If both calls pass, the bytes that were read came from the file.
/// @throws InvalidArgument  the file has become shorter than its mapping
void check_still_whole(const TensorEntry& entry);

/// A safetensors file. It is memory-mapped and checked completely before any tensor is returned.
class TensorFile {
 public:
  /// @throws InvalidArgument  missing, truncated, header too large or not JSON, offsets that overlap, leave gaps or lie
  ///                          outside, sizes that do not fit shape and dtype, a duplicate or unknown key, a pickle
  ///                          (says how to convert)
  static TensorFile open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  /// @throws InvalidArgument  no such tensor (nearest match named)
  const TensorEntry& at(std::string_view name) const;
  bool has(std::string_view name) const;
  const std::map<std::string, TensorEntry, std::less<>>& entries() const { return entries_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  std::filesystem::path path_;
  std::shared_ptr<const void> mapping_;
  std::map<std::string, TensorEntry, std::less<>> entries_;
  std::map<std::string, std::string> metadata_;
};

/// The weights of a checkpoint folder: `model.safetensors`, or shards named by `model.safetensors.index.json`.
class TensorDirectory {
 public:
  /// @param folder  in Hugging Face layout (see resolve_checkpoint_folder)
  /// @throws InvalidArgument  as TensorFile::open; no weights; only pickled ones (`.bin`, `.pt`, `.pth`: how to
  /// convert); both a single file and an index; a shard missing, or left over; a tensor that the index puts in another
  /// shard, or does not have
  static TensorDirectory open(const std::filesystem::path& folder);

  const std::map<std::string, TensorEntry, std::less<>>& entries() const { return entries_; }
  std::vector<std::filesystem::path> files() const;  ///< the weight files and, if there is one, the index; sorted
  /// What the user is told: what is wrong in the index, as in some published ones, and cannot change a tensor: tensors
  /// that no shard has (a model that needs one is refused), and a metadata.total_size that is not the sum of their
  /// bytes.
  const std::vector<std::string>& remarks() const { return remarks_; }

 private:
  std::vector<TensorFile> files_;
  std::filesystem::path index_;
  std::map<std::string, TensorEntry, std::less<>> entries_;
  std::vector<std::string> remarks_;
};

/// The folder that holds config.json: `path` itself, or the snapshot of a Hugging Face cache folder
/// (`models--org--name`, by refs/main or the only snapshot).
/// @throws InvalidArgument  no config.json there; several snapshots and no refs/main (names them)
std::filesystem::path resolve_checkpoint_folder(const std::filesystem::path& path);

/// The snapshot in a cache folder of the Hugging Face Hub: the one that refs/main names, or the only one.
/// @throws InvalidArgument  no snapshots; several and no refs/main (names them)
std::filesystem::path snapshot_of_cache(const std::filesystem::path& cache);

/// What write_tensors stores.
struct TensorToWrite {
  std::string name;
  DType dtype{};
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
};

/// Writes a safetensors file atomically. Tensors are sorted by name, so the same tensors give the same bytes.
/// @throws InvalidArgument  a name twice, sizes that do not fit; RunFailed  disk full
void write_tensors(const std::filesystem::path& path, const std::vector<TensorToWrite>& tensors,
                   const std::map<std::string, std::string>& metadata = {});

}  // namespace gainlens::formats
