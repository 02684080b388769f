#include "runfile/run_file_proof.h"

#include "core/checked.h"
#include "core/error.h"
#include "runfile/hdf5.h"
#include "runfile/run_file.h"
#include "runfile/run_reader.h"
#include "runfile/shard_file.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace gainlens::runfile {
namespace {

static_assert(std::endian::native == std::endian::little, "bytes of the file are compared with those in memory");

namespace fs = std::filesystem;

template <typename... Args>
void require(bool same, fmt::format_string<Args...> format, Args&&... args) {
  if (!same) throw hdf5::Error(fmt::format(format, std::forward<Args>(args)...));
}

void prove_text(const hdf5::Handle& dataset, const std::string& name, std::string_view expected,
                const std::string& path) {
  require(hdf5::read_text_attribute(dataset.get(), name) == expected,
          "attribute '{}' of dataset '{}' is not as written", name, path);
}

class Proof {
 public:
  Proof(const hdf5::Handle& file, const Request& request, const std::map<ShardKey, fs::path>& shards)
      : file_(file), request_(request), shards_(shards) {}

  /// Names, units and coordinates of each dataset, and that nothing stands where no shard is.
  void prove_frame() const {
    const hdf5::Handle complete = hdf5::open_dataset(
        file_.get(), "complete", {H5T_STD_I8LE, {std::ssize(request_.lengths), request_.samples}, {}});
    prove_scales(complete, "complete", {Axis::length, Axis::sample}, "");
    for (const DatasetInfo& info : schema()) {
      if (!info.present(request_)) continue;
      const bool each_length = info.group == Group::queries;
      for (const std::int64_t length : each_length ? request_.lengths : std::vector{request_.lengths.front()}) {
        const std::string path = info.path(length);
        const hdf5::Handle dataset = open(info, length);
        prove_text(dataset, "units", info.unit, path);
        prove_text(dataset, "long_name", info.meaning, path);
        prove_scales(dataset, path, info.run_axes(), path.substr(0, path.rfind('/')));
      }
    }
    for (std::size_t place = 0; place < request_.lengths.size(); ++place) {
      for (std::int64_t sample = 0; sample < request_.samples; ++sample) {
        if (!shards_.contains({request_.lengths[place], sample}))
          prove_absent(static_cast<std::int64_t>(place), sample);
      }
    }
  }

  void prove_shard(const ShardKey& key, const hdf5::Handle& shard) {
    const auto place =
        std::lower_bound(request_.lengths.begin(), request_.lengths.end(), key.length) - request_.lengths.begin();
    for (const DatasetInfo& info : schema()) {
      if (!info.present(request_)) continue;
      const hdf5::Handle from = open_shard_dataset(shard, info, request_, key.length);
      bool same = false;
      if (info.group == Group::queries) {
        same = hdf5::has_copied_chunks(from, open(info, key.length), key.sample);
        chunks_[{&info, key.length}] += hdf5::chunk_count(from);
      } else {
        std::vector<char> bytes(box_bytes(info));
        hdf5::read(from, number_type(request_), bytes.data());
        same = bytes == box(info, {place, key.sample});
      }
      require(same, "dataset '{}' differs from the shard of length {}, sample {}", info.path(key.length), key.length,
              key.sample);
    }
  }

  /// After every shard: that the datasets of /queries hold no chunk beside those of the shards.
  void prove_no_other_chunks() const {
    for (const auto& [dataset, expected] : chunks_) {
      const auto& [info, length] = dataset;
      require(hdf5::chunk_count(open(*info, length)) == expected, "dataset '{}' holds chunks of no shard",
              info->path(length));
    }
  }

 private:
  hdf5::Handle open(const DatasetInfo& info, std::int64_t length) const {
    return hdf5::open_dataset(file_.get(), info.path(length), run_layout(info, request_, length));
  }

  /// Bytes of one shard's share of a dataset; shapes outside of /queries do not depend on the length.
  std::size_t box_bytes(const DatasetInfo& info) const {
    const auto elements = checked_elements(info.shard_shape(request_, request_.lengths.front()), info.name);
    return static_cast<std::size_t>(elements) * H5Tget_size(number_type(request_));
  }

  /// What [length, sample] of a dataset holds.
  std::vector<char> box(const DatasetInfo& info, hdf5::Shape offset) const {
    const hdf5::Shape shape = info.shard_shape(request_, request_.lengths.front());
    hdf5::Shape count = {1, 1};
    count.insert(count.end(), shape.begin(), shape.end());
    offset.resize(count.size(), 0);
    std::vector<char> bytes(box_bytes(info));
    hdf5::read_box(open(info, request_.lengths.front()), offset, count, number_type(request_), bytes.data());
    return bytes;
  }

  /// @param folder  where second names of the scales are; empty: nowhere
  void prove_scales(const hdf5::Handle& dataset, const std::string& path, const std::vector<Axis>& axes,
                    const std::string& folder) const {
    for (unsigned i = 0; i < axes.size(); ++i) {
      const std::string name(name_of(axes[i])), beside = folder.empty() ? name : fmt::format("{}/{}", folder, name);
      require(hdf5::has_scale(dataset, i, hdf5::address_of(file_.get(), beside)),
              "axis {} of dataset '{}' lost its scale", i, path);
    }
  }

  void prove_absent(std::int64_t place, std::int64_t sample) const {
    for (const DatasetInfo& info : schema()) {
      if (!info.present(request_) || info.group == Group::queries) continue;
      require(box(info, {place, sample}) == nothing(box_bytes(info)),
              "dataset '{}' has numbers where there is no shard", info.path(request_.lengths.front()));
    }
  }

  /// What stands where nothing was written: NaN, as the files hold it.
  std::vector<char> nothing(std::size_t size) const {
    const double wide = std::numeric_limits<double>::quiet_NaN();
    const float narrow = std::numeric_limits<float>::quiet_NaN();
    const bool float64 = stores_float64(request_);
    const std::size_t width = float64 ? sizeof wide : sizeof narrow;
    std::vector<char> bytes(size);
    for (std::size_t at = 0; at < size; at += width)
      std::memcpy(&bytes[at], float64 ? static_cast<const void*>(&wide) : &narrow, width);
    return bytes;
  }

  const hdf5::Handle& file_;
  const Request& request_;
  const std::map<ShardKey, fs::path>& shards_;
  std::map<std::pair<const DatasetInfo*, std::int64_t>, std::uint64_t> chunks_;  // of the shards, by dataset and length
};

/// What every later reader looks at first.
void prove_reading(const fs::path& path, const Request& request, const std::map<ShardKey, fs::path>& shards) {
  const RunReader reader = RunReader::open(path);
  require(reader.request().to_json() == request.to_json(), "'/request' is not as written");
  for (std::size_t place = 0; place < request.lengths.size(); ++place) {
    for (std::int64_t sample = 0; sample < request.samples; ++sample) {
      require(reader.complete(place, sample) == shards.contains({request.lengths[place], sample}),
              "'/complete' is not as written");
    }
  }
}

}  // namespace

void prove_run_file(const fs::path& path, const Request& request, const std::map<ShardKey, fs::path>& shards) {
  try {
    prove_reading(path, request, shards);
    const hdf5::Handle file = hdf5::open_file(path);
    Proof proof(file, request, shards);
    proof.prove_frame();
    for (const auto& [key, shard] : shards) proof.prove_shard(key, open_shard(shard, request, key));
    proof.prove_no_other_chunks();
  } catch (const std::runtime_error& error) {  // hdf5::Error, and InvalidArgument of the reader
    throw_run_failed(
        "{}: does not read back as it was written: {}; the shards are kept: look after the disk and repeat the command",
        printable(path.string()), printable(error.what(), 300));
  }
}

}  // namespace gainlens::runfile
