#pragma once

#include "formats/pickle_data.h"
#include "formats/tensor_file.h"
#include "formats/zip_archive.h"

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace gainlens::formats {

/// A checkpoint that torch.save wrote (PyTorch 1.6 or newer): a zip archive of a pickle and the bytes of its tensors.
/// The pickle is read as data (PickleData): no class or function that it names is looked up or called, so that a file
/// from a stranger is safe to open.
class TorchFile {
 public:
  using Tensors = std::map<std::string, TensorEntry, std::less<>>;

  /// @throws InvalidArgument  as ZipArchive::open and PickleData::parse; the format of PyTorch before 1.6; not of
  ///     torch.save; another byte order
  static TorchFile open(const std::filesystem::path& path);

  std::string where() const { return archive_.where(); }  ///< the path, for messages
  const PickleData& content() const { return content_; }
  /// The tensors of a dictionary of names and tensors, such as a state dictionary. Their bytes stay in the mapped file.
  /// @param what  names the dictionary in messages
  /// @throws InvalidArgument  not such a dictionary; a tensor that is not stored row by row, lies partly outside its
  ///     bytes, or has a type that is not read
  Tensors tensors(PickleId dictionary, std::string_view what) const;

 private:
  TensorEntry tensor(PickleId id, const std::string& name, const std::string& what) const;
  std::span<const std::byte> storage(PickleId reference, DType& dtype, const std::string& what) const;
  std::int64_t whole(PickleId id, const std::string& what) const;

  ZipArchive archive_;
  std::string folder_;  // of the entries, with a slash
  PickleData content_;
};

}  // namespace gainlens::formats
