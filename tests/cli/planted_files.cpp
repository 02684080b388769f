#include "cli/planted_files.h"

#include "core/utf8.h"
#include "runfile/hdf5.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace gainlens::testing {
namespace {

namespace fs = std::filesystem;
namespace hdf5 = runfile::hdf5;

/// Of a longer array, or of an object with more keys, so many members are tried: they are read alike.
constexpr std::size_t most_elements = 3, max_keys = 128;

/// The places of a document as JSON pointers, the parents first.
void collect(const Json& value, const Json::json_pointer& at, std::vector<Json::json_pointer>& places) {
  if (!at.empty()) places.push_back(at);
  if (value.is_object()) {
    std::size_t left = value.size() > max_keys ? most_elements : value.size();
    for (const auto& [key, inner] : value.items()) {
      if (left-- == 0) break;
      collect(inner, at / key, places);
    }
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < std::min(value.size(), most_elements); ++i) collect(value[i], at / i, places);
  }
}

/// A text in a file, after the number of its bytes.
struct StoredText {
  std::string place;
  std::size_t offset, bytes;  // of the number; of the text
};

/// The texts of a GGUF file that is not damaged, up to its data.
class GgufTexts {
 public:
  explicit GgufTexts(const std::string& bytes) : bytes_(bytes) {
    at_ = 8;
    const auto tensors = number<std::uint64_t>(), keys = number<std::uint64_t>();
    for (std::uint64_t i = 0; i < keys; ++i) {
      const std::string key = text("key");
      value(number<std::uint32_t>(), key);
    }
    for (std::uint64_t i = 0; i < tensors; ++i) {
      text("tensor");
      const auto dimensions = number<std::uint32_t>();
      at_ += dimensions * sizeof(std::uint64_t) + sizeof(std::uint32_t) + sizeof(std::uint64_t);
    }
  }
  const std::vector<StoredText>& texts() const { return texts_; }
  std::size_t end() const { return at_; }

 private:
  template <typename Number>
  Number number() {
    Number value{};
    std::memcpy(&value, bytes_.data() + at_, sizeof value);
    at_ += sizeof value;
    return value;
  }
  std::string text(const std::string& kind) {
    const std::size_t offset = at_;
    const auto bytes = number<std::uint64_t>();
    const std::string found = bytes_.substr(at_, bytes);
    texts_.push_back({fmt::format("{} {}", kind, found), offset, bytes});
    at_ += bytes;
    return found;
  }
  void value(std::uint32_t kind, const std::string& key) {
    constexpr std::size_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    if (kind == 8) {
      text(key);
    } else if (kind == 9) {
      const auto element = number<std::uint32_t>();
      const auto count = number<std::uint64_t>();
      for (std::uint64_t i = 0; i < count; ++i) {
        value(element, key);
        if (element == 8 && i >= most_elements) texts_.pop_back();
      }
    } else {
      at_ += sizes[kind];
    }
  }

  const std::string& bytes_;
  std::size_t at_ = 0;
  std::vector<StoredText> texts_;
};

constexpr std::size_t alignment = 32;

std::size_t aligned(std::size_t offset) {
  return (offset + alignment - 1) / alignment * alignment;
}

/// One place of an HDF5 file: an attribute, or an object if it has no name.
struct Hdf5Place {
  std::string object, attribute;
};

void add_attributes(hid_t file, const std::string& object, std::vector<Hdf5Place>& places) {
  const auto add = [](hid_t, const char* attribute, const H5A_info_t*, void* names) -> herr_t {
    static_cast<std::vector<std::string>*>(names)->push_back(attribute);
    return 0;
  };
  std::vector<std::string> attributes;
  EXPECT_GE(
      H5Aiterate_by_name(file, object.c_str(), H5_INDEX_NAME, H5_ITER_INC, nullptr, add, &attributes, H5P_DEFAULT), 0);
  for (const std::string& attribute : attributes) places.push_back({object, attribute});
}

std::vector<Hdf5Place> places_of(const fs::path& file) {
  const hdf5::Handle opened = hdf5::open_file(file);
  const auto add = [](hid_t, const char* name, const H5L_info_t*, void* names) -> herr_t {
    static_cast<std::vector<std::string>*>(names)->push_back(name);
    return 0;
  };
  std::vector<std::string> objects;
  EXPECT_GE(H5Lvisit(opened.get(), H5_INDEX_NAME, H5_ITER_INC, add, &objects), 0);
  std::vector<Hdf5Place> places;
  add_attributes(opened.get(), ".", places);
  for (const std::string& object : objects) {
    places.push_back({object, ""});
    add_attributes(opened.get(), object, places);
  }
  return places;
}

class ChangedHdf5 {
 public:
  ChangedHdf5(const fs::path& original, const fs::path& made) {
    fs::copy_file(original, made, fs::copy_options::overwrite_existing);
    file_ = H5Fopen(made.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    EXPECT_GE(file_, 0) << made;
  }
  ChangedHdf5(const ChangedHdf5&) = delete;
  ChangedHdf5& operator=(const ChangedHdf5&) = delete;
  ~ChangedHdf5() { EXPECT_GE(H5Fclose(file_), 0); }
  hid_t get() const { return file_; }

  /// Appends the text to an attribute, or puts it in place of one that is not text.
  void plant_attribute(const Hdf5Place& place, bool texts_only = false) const {
    const hid_t object = H5Oopen(file_, place.object.c_str(), H5P_DEFAULT);
    const auto old = hdf5::read_text_attribute(object, place.attribute);
    if (old || !texts_only) {
      EXPECT_GE(H5Adelete(object, place.attribute.c_str()), 0) << place.attribute;
      hdf5::write_attribute(object, place.attribute, old.value_or("") + plant);
    }
    H5Oclose(object);
  }
  void replace_texts(const std::string& dataset, const std::vector<std::string>& texts,
                     const hdf5::Shape& shape) const {
    EXPECT_GE(H5Ldelete(file_, dataset.c_str(), H5P_DEFAULT), 0);
    hdf5::write_strings(file_, dataset, texts, shape);
  }
  void rename(const std::string& object) const {
    EXPECT_GE(H5Lmove(file_, object.c_str(), file_, (object + plant).c_str(), H5P_DEFAULT, H5P_DEFAULT), 0) << object;
  }

 private:
  hid_t file_;
};

/// The texts of a dataset; empty if it holds others things.
std::vector<std::string> texts_of(const fs::path& file, const std::string& dataset, hdf5::Shape& shape) {
  const hdf5::Handle opened = hdf5::open_file(file);
  try {
    shape = hdf5::shape_at(opened.get(), dataset);
    return hdf5::read_strings(opened.get(), dataset, shape, std::uint64_t{1} << 20);
  } catch (const hdf5::Error&) {
    return {};
  }
}

}  // namespace

std::string sent_on(std::string_view printed) {
  if (const auto at = first_invalid_utf8(printed)) return fmt::format("not UTF-8 at byte {}", *at);
  for (std::size_t i = 0; i < printed.size(); ++i) {
    const auto byte = static_cast<unsigned char>(printed[i]);
    const bool c1 = byte == 0xc2 && i + 1 < printed.size() && static_cast<unsigned char>(printed[i + 1]) < 0xa0;
    if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f || c1)
      return fmt::format("byte {:#x} at {} of: {}", byte, i, printed.substr(0, i));
  }
  if (printed.find("\nSECOND") != printed.npos) return fmt::format("a second line: {}", printed);
  return "";
}

void for_each_planted(const Json& document, const std::function<void(const std::string&, const Json&)>& work) {
  std::vector<Json::json_pointer> places;
  collect(document, Json::json_pointer(), places);
  for (const auto& place : places) {
    const Json& old = document.at(place);
    Json planted = document;
    planted[place] = old.is_string() ? old.get<std::string>() + plant : plant;
    work(place.to_string(), planted);
    const auto parent = place.parent_pointer();
    if (!document.at(parent).is_object()) continue;
    Json renamed = document;
    renamed[parent].erase(place.back());
    renamed[parent][place.back() + plant] = old;
    work(place.to_string() + " (key)", renamed);
  }
  Json more = document;
  if (more.is_object()) more[plant] = plant;
  if (more.is_array()) more.push_back(plant);
  work("one more", more);
}

Json safetensors_header(const std::string& bytes) {
  std::uint64_t size = 0;
  std::memcpy(&size, bytes.data(), sizeof size);
  return Json::parse(bytes.substr(sizeof size, size));
}

void for_each_planted_header(const std::string& bytes,
                             const std::function<void(const std::string&, const std::string&)>& work) {
  Json header = safetensors_header(bytes);
  std::uint64_t size = 0;
  std::memcpy(&size, bytes.data(), sizeof size);
  const std::string data = bytes.substr(sizeof size + size);
  if (!header.contains("__metadata__")) header["__metadata__"]["format"] = "pt";
  for_each_planted(header, [&](const std::string& place, const Json& planted) {
    std::string text = planted.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    const std::uint64_t length = text.size();
    work(place, std::string(reinterpret_cast<const char*>(&length), sizeof length) + text + data);
  });
}

void for_each_planted_gguf(const std::string& bytes,
                           const std::function<void(const std::string&, const std::string&)>& work) {
  const GgufTexts found(bytes);
  const std::string data = bytes.substr(std::min(bytes.size(), aligned(found.end())));
  for (const StoredText& text : found.texts()) {
    const std::size_t begin = text.offset + sizeof(std::uint64_t);
    const std::uint64_t length = text.bytes + plant.size();
    std::string planted = bytes.substr(0, text.offset);
    planted.append(reinterpret_cast<const char*>(&length), sizeof length);
    planted += bytes.substr(begin, text.bytes) + plant;
    planted += bytes.substr(begin + text.bytes, found.end() - begin - text.bytes);
    planted.resize(aligned(planted.size()));
    work(text.place, planted + data);
  }
}

void for_each_planted_hdf5(const fs::path& original, const fs::path& made,
                           const std::function<void(const std::string&)>& work) {
  const auto changed = [&](const std::string& place, const auto& change) {
    {
      const ChangedHdf5 file(original, made);
      change(file);
    }
    work(place);
  };
  for (const Hdf5Place& place : places_of(original)) {
    if (!place.attribute.empty()) {
      changed(place.object + "@" + place.attribute, [&](const ChangedHdf5& file) { file.plant_attribute(place); });
      continue;
    }
    changed(place.object + " (name)", [&](const ChangedHdf5& file) { file.rename(place.object); });
    hdf5::Shape shape;
    std::vector<std::string> texts = texts_of(original, place.object, shape);
    if (texts.empty()) continue;
    if (texts.front().starts_with("{")) {
      for_each_planted(Json::parse(texts.front()), [&](const std::string& inner, const Json& planted) {
        changed(place.object + ": " + inner,
                [&](const ChangedHdf5& file) { file.replace_texts(place.object, {planted.dump()}, shape); });
      });
    }
    texts.front() += plant;
    changed(place.object, [&](const ChangedHdf5& file) { file.replace_texts(place.object, texts, shape); });
  }
}

void plant_everywhere(const fs::path& original, const fs::path& made) {
  const std::vector<Hdf5Place> places = places_of(original);
  const ChangedHdf5 file(original, made);
  for (const Hdf5Place& place : places) {
    const bool ours = place.attribute != "format" && place.attribute != "CLASS" && place.attribute != "NAME";
    if (!place.attribute.empty() && ours) file.plant_attribute(place, /*texts_only=*/true);
  }
}

}  // namespace gainlens::testing
