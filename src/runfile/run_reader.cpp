#include "runfile/run_reader.h"

#include "core/check.h"
#include "core/checked.h"
#include "core/nearest.h"
#include "core/quantity.h"
#include "runfile/hdf5.h"
#include "runfile/run_file.h"
#include "runfile/run_kind.h"
#include "runfile/schema.h"
#include "runfile/shard_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

namespace gainlens::runfile {
namespace {

namespace fs = std::filesystem;

/// run.h5 of a run folder, or the file itself.
fs::path locate(const fs::path& path) {
  const std::string shown = printable(path.string());
  CHECK(fs::exists(path), "{}: no such file or folder; give a run folder or its run.h5", shown);
  if (!fs::is_directory(path)) return path;
  const fs::path file = path / run_file_name;
  if (fs::exists(file)) return file;
  CHECK(fs::exists(path / "request.json"), "{}: is not a run folder (it has neither run.h5 nor request.json)", shown);
  const Request request = Request::from_json(read_json_file(path / "request.json"), (path / "request.json").string());
  std::ptrdiff_t done = 0;
  if (fs::is_directory(path / "shards")) {
    done = std::count_if(fs::directory_iterator(path / "shards"), fs::directory_iterator(),
                         [](const fs::directory_entry& entry) {
                           return parse_shard_file_name(entry.path().filename().string()).has_value();
                         });
  }
  throw_invalid(
      "{}: has no run.h5: the sweep has not finished ({} of {} chunks are done); repeat its `gainlens sweep` command "
      "with the same --out, which resumes",
      shown, done, std::ssize(request.lengths) * request.samples);
}

std::vector<std::int64_t> read_integers(const hdf5::Handle& file, const std::string& path, const hdf5::Layout& layout) {
  const hdf5::Handle dataset = hdf5::open_dataset(file.get(), path, layout);
  std::vector<std::int64_t> values(static_cast<std::size_t>(checked_elements(layout.shape, path)));
  hdf5::read(dataset, H5T_NATIVE_INT64, values.data());
  return values;
}

void check_axis(const hdf5::Handle& file, const std::string& path, Axis axis, const Request& request,
                std::int64_t length) {
  // Read before the expected values are made: the file must hold as many values, so a size that is only claimed is
  // never allocated.
  const std::vector<std::int64_t> stored =
      read_integers(file, path, {H5T_STD_I64LE, {axis_size(axis, request, length)}, {}});
  if (stored != axis_values(axis, request, length))
    throw hdf5::Error(fmt::format("scale '{}' disagrees with /request", path));
}

}  // namespace

struct RunReader::State {
  fs::path path;
  hdf5::Handle file;
  Request request;
  std::vector<std::int64_t> complete;  // [length, sample] 0 or 1
  std::vector<std::int64_t> kept;      // lengths in tokens; empty: all
  std::vector<std::string> names;
  std::map<std::string, std::pair<const DatasetInfo*, std::int64_t>, std::less<>>
      datasets;  // name -> its line and context length

  using Dataset = decltype(datasets)::value_type;

  /// @throws InvalidArgument  no such dataset
  const Dataset* find(std::string_view name) const {
    const auto found = datasets.find(name);
    CHECK(found != datasets.end(), "{}: has no dataset '{}'{}", printable(path.string()), printable(name),
          did_you_mean(name, names));
    return &*found;
  }

  [[noreturn]] void throw_damaged(std::string_view name, const hdf5::Error& error) const {
    throw_invalid("{}: dataset '{}': {}; the file is damaged (repeating the sweep command rebuilds it from its shards)",
                  printable(path.string()), name, printable(error.what()));
  }

  void check_format() const {
    const auto format = hdf5::read_text_attribute(file.get(), "format");
    CHECK(format, "{}: has no attribute 'format'; it is not a run of gainlens sweep", printable(path.string()));
    CHECK(*format == run_format, "{}: its format is '{}'; a run of gainlens sweep ('{}') is needed here",
          printable(path.string()), printable(*format), run_format);
    const auto version = hdf5::read_integer_attribute(file.get(), "format_version");
    CHECK(version == run_format_version, "{}: its format version is {}; this gainlens reads version {}",
          printable(path.string()), version ? std::to_string(*version) : "missing", run_format_version);
  }

  void read_frame() {
    const std::string where = path.string() + ": /request";
    request = Request::from_json(
        parse_json(hdf5::read_strings(file.get(), "request", {}, max_text_bytes).front(), where), where);
    for (const Axis axis : root_axes(request)) check_axis(file, std::string(name_of(axis)), axis, request, 0);
    if (hdf5::read_strings(file.get(), "attention", {std::ssize(request.layers)}, max_text_bytes) !=
        request.attention) {
      throw hdf5::Error("'/attention' disagrees with /request");
    }
    complete = read_integers(file, "complete", {H5T_STD_I8LE, {std::ssize(request.lengths), request.samples}, {}});
    for (const std::int64_t length : request.lengths) {
      const std::string scale = fmt::format("queries/{}/query", length);
      if (request.statistics && request.per_query) check_axis(file, scale, Axis::query, request, length);
    }
  }

  void find_datasets() {
    for (const DatasetInfo& info : schema()) {
      if (!info.present(request)) continue;
      const bool each_length = info.group == Group::queries;
      for (const std::int64_t length : each_length ? request.lengths : std::vector{request.lengths.front()}) {
        hdf5::open_dataset(file.get(), info.path(length), run_layout(info, request, length));
        if (info.kind != Kind::text) names.push_back(info.path(length));
        datasets.emplace(info.path(length), std::pair{&info, length});
      }
    }
  }
};

RunReader RunReader::open(const fs::path& path, const fs::path& stands_for) {
  refuse_other_than_sweep(path);
  auto state = std::make_unique<State>();
  state->path = locate(path);
  try {
    state->file = hdf5::open_file(state->path);
    state->check_format();
    state->read_frame();
    state->find_datasets();
  } catch (const hdf5::Error& error) {
    throw_invalid(
        "{}: {}; it is damaged or not a run of gainlens sweep (repeating the sweep command rebuilds run.h5 from its "
        "shards)",
        printable(state->path.string()), printable(error.what()));
  }
  if (!stands_for.empty()) state->path = stands_for;
  return RunReader(std::move(state));
}

RunReader::RunReader(std::unique_ptr<State> state) : state_(std::move(state)) {}
RunReader::~RunReader() = default;
RunReader::RunReader(RunReader&&) noexcept = default;
RunReader& RunReader::operator=(RunReader&&) noexcept = default;

const fs::path& RunReader::path() const {
  return state_->path;
}
const Request& RunReader::request() const {
  return state_->request;
}
const std::vector<std::int64_t>& RunReader::lengths() const {
  return state_->request.lengths;
}
std::int64_t RunReader::samples() const {
  return state_->request.samples;
}
const std::vector<std::int64_t>& RunReader::layers() const {
  return state_->request.layers;
}
std::int64_t RunReader::heads() const {
  return state_->request.heads;
}
std::int64_t RunReader::kv_heads() const {
  return state_->request.kv_heads;
}

std::int64_t RunReader::kv_heads(std::size_t layer) const {
  const std::vector<std::int64_t>& own = state_->request.layer_kv_heads;
  return own.empty() ? kv_heads() : own.at(layer);
}

std::int64_t RunReader::kv_repeats(std::size_t layer) const {
  return kv_heads() / kv_heads(layer);
}

std::int64_t RunReader::kv_head_of(std::size_t layer, std::int64_t head) const {
  return head * kv_heads(layer) / heads();
}

const std::vector<std::string>& RunReader::attention() const {
  return state_->request.attention;
}

void RunReader::keep_lengths(const std::vector<std::int64_t>& tokens) {
  for (const std::int64_t length : tokens) {
    std::vector<std::string> known;
    for (const std::int64_t stored : lengths()) known.push_back(format_count(stored));
    CHECK(std::find(lengths().begin(), lengths().end(), length) != lengths().end(),
          "{}: the run has no length of {} tokens; it has {}", printable(path().string()), length,
          fmt::join(known, ", "));
  }
  state_->kept = tokens;
}

bool RunReader::is_kept(std::size_t length_index) const {
  const std::vector<std::int64_t>& kept = state_->kept;
  return kept.empty() || std::find(kept.begin(), kept.end(), lengths().at(length_index)) != kept.end();
}

bool RunReader::complete(std::size_t length_index, std::int64_t sample) const {
  ASSERT(length_index < lengths().size() && sample >= 0 && sample < samples(), "no length {} or sample {}",
         length_index, sample);
  return state_->complete[length_index * static_cast<std::size_t>(samples()) + static_cast<std::size_t>(sample)] != 0;
}

bool RunReader::has(std::string_view name) const {
  return state_->datasets.contains(name);
}

std::vector<std::string> RunReader::names() const {
  return state_->names;
}

Array RunReader::read(std::string_view name) const {
  const State::Dataset* found = state_->find(name);
  const auto& [info, length] = found->second;
  CHECK(info->kind != Kind::text, "{}: dataset '{}' holds text; numbers are needed here",
        printable(state_->path.string()), name);
  const hdf5::Layout layout = run_layout(*info, state_->request, length);
  try {
    const hdf5::Handle dataset = hdf5::open_dataset(state_->file.get(), found->first, layout);
    hdf5::check_content(dataset, layout.shape, found->first);
    const auto elements = static_cast<std::size_t>(checked_elements(layout.shape, name));
    Array array{layout.shape, std::vector<double>(elements)};
    hdf5::read(dataset, H5T_NATIVE_DOUBLE, array.values.data());
    return array;
  } catch (const hdf5::Error& error) {
    state_->throw_damaged(name, error);
  }
}

std::vector<std::string> RunReader::read_text(std::string_view name) const {
  const State::Dataset* found = state_->find(name);
  const auto& [info, length] = found->second;
  CHECK(info->kind == Kind::text, "{}: dataset '{}' holds numbers; text is needed here",
        printable(state_->path.string()), name);
  try {
    return hdf5::read_strings(state_->file.get(), found->first, info->run_shape(state_->request, length),
                              max_text_bytes);
  } catch (const hdf5::Error& error) {
    state_->throw_damaged(name, error);
  }
}

}  // namespace gainlens::runfile
