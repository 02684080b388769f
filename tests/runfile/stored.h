#pragma once

#include <hdf5.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

/// What lies in an HDF5 file, read with the plain library: without the schema and without the reader of runs.
namespace gainlens::testing {

/// Opens a run file with the plain library, to damage it. What is made in it has the form of the rest.
inline hid_t open_to_change(const std::filesystem::path& path) {
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110);
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, access);
  H5Pclose(access);
  return file;
}

class StoredFile {
 public:
  explicit StoredFile(const std::filesystem::path& path) : id_(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT)) {}
  StoredFile(const StoredFile&) = delete;
  StoredFile& operator=(const StoredFile&) = delete;
  ~StoredFile() { H5Fclose(id_); }

  bool has(const std::string& path) const { return H5Lexists(id_, path.c_str(), H5P_DEFAULT) > 0; }

  std::vector<hsize_t> shape(const std::string& path) const {
    const hid_t dataset = open(path), space = H5Dget_space(dataset);
    std::vector<hsize_t> sizes(static_cast<std::size_t>(H5Sget_simple_extent_ndims(space)));
    H5Sget_simple_extent_dims(space, sizes.data(), nullptr);
    H5Sclose(space);
    H5Dclose(dataset);
    return sizes;
  }

  bool holds_type(const std::string& path, hid_t type) const {
    const hid_t dataset = open(path), stored = H5Dget_type(dataset);
    const bool same = H5Tequal(stored, type) > 0;
    H5Tclose(stored);
    H5Dclose(dataset);
    return same;
  }

  /// The numbers of a dataset as double. Empty if it is absent.
  std::vector<double> numbers(const std::string& path) const {
    if (!has(path)) return {};
    std::size_t count = 1;
    for (const hsize_t size : shape(path)) count *= size;
    std::vector<double> values(count);
    const hid_t dataset = open(path);
    H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
    H5Dclose(dataset);
    return values;
  }

  /// A text attribute of an object, "/" for the root. "(absent)" if it has none of this name.
  std::string attribute(const std::string& path, const std::string& name) const {
    if (H5Aexists_by_name(id_, path.c_str(), name.c_str(), H5P_DEFAULT) <= 0) return "(absent)";
    const hid_t attribute = H5Aopen_by_name(id_, path.c_str(), name.c_str(), H5P_DEFAULT, H5P_DEFAULT);
    const hid_t type = H5Aget_type(attribute);
    std::string text(H5Tget_size(type), '\0');
    H5Aread(attribute, type, text.data());
    H5Tclose(type);
    H5Aclose(attribute);
    text.erase(std::min(text.find('\0'), text.size()));
    return text;
  }

  /// Names in a group.
  std::set<std::string> names(const std::string& group) const {
    std::set<std::string> found;
    const auto add = [](hid_t, const char* name, const H5L_info_t*, void* data) -> herr_t {
      static_cast<std::set<std::string>*>(data)->insert(name);
      return 0;
    };
    H5Literate_by_name(id_, group.c_str(), H5_INDEX_NAME, H5_ITER_INC, nullptr, add, &found, H5P_DEFAULT);
    return found;
  }

  /// Whether both are names of one object.
  bool same_object(const std::string& a, const std::string& b) const { return address(a) == address(b); }

 private:
  hid_t open(const std::string& path) const { return H5Dopen2(id_, path.c_str(), H5P_DEFAULT); }
  haddr_t address(const std::string& path) const {
    H5O_info_t info{};
    H5Oget_info_by_name2(id_, path.c_str(), &info, H5O_INFO_BASIC, H5P_DEFAULT);
    return info.addr;
  }

  hid_t id_;
};

/// Takes from a run.h5 what its first edition did not have: the coordinates besides the dimension scales and
/// /attention, and all text attributes but the format of the file, and units and meanings of datasets.
inline void make_first_edition(const std::filesystem::path& path) {
  const std::set<std::string> added = {"kv_head_of_head", "bin_begin", "bin_end", "token_offset", "key_0_visible"};
  const std::set<std::string> scales = {"length", "sample", "layer", "head", "kv_head", "bin", "key", "query"};
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  std::vector<std::string> paths;
  const auto collect = [](hid_t, const char* name, const H5L_info_t*, void* data) -> herr_t {
    static_cast<std::vector<std::string>*>(data)->emplace_back(name);
    return 0;
  };
  H5Lvisit(file, H5_INDEX_NAME, H5_ITER_INC, collect, &paths);
  const auto remove_attribute = [&](const std::string& object, const char* name) {
    if (H5Aexists_by_name(file, object.c_str(), name, H5P_DEFAULT) > 0)
      H5Adelete_by_name(file, object.c_str(), name, H5P_DEFAULT);
  };
  for (const std::string& object : paths) {
    const std::size_t slash = object.rfind('/');
    const std::string name = slash == std::string::npos ? object : object.substr(slash + 1);
    if (added.contains(name) || object.ends_with("/attention")) {
      H5Ldelete(file, object.c_str(), H5P_DEFAULT);
      continue;
    }
    for (const char* attribute : {"coordinates", "comment"}) remove_attribute(object, attribute);
    if (!scales.contains(name) && object != "attention" && object != "request" && object != "complete") continue;
    remove_attribute(object, "units");
    if (object != "complete") remove_attribute(object, "long_name");
  }
  for (const char* name : {"Conventions", "title", "family", "source", "references", "gainlens_version"})
    remove_attribute("/", name);
  H5Fclose(file);
}

}  // namespace gainlens::testing
