// Opens any bytes as run.h5 of each kind: a sweep, a sweep of recommenders, a training of recommenders, an experiment.
// Every dataset is read. The checksums of changed metadata are made right first; what a checksum refuses was never
// looked into. The result is either numbers and texts, or InvalidArgument.
#include "core/error.h"
#include "runfile/attention_run.h"
#include "runfile/experiment_run.h"
#include "runfile/recommend_run.h"
#include "runfile/run_reader.h"
#include "support/hdf5_checksums.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string>

namespace {

using namespace gainlens;

/// @return whether the file is of this kind
bool read_as(const std::function<void()>& reader) {
  try {
    reader();
    return true;
  } catch (const InvalidArgument& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();  // must be one line
    return false;
  }
}

void read_sweep(const std::string& path) {
  const auto reader = runfile::RunReader::open(path);
  for (const std::string& name : reader.names()) read_as([&] { reader.read(name); });
  if (reader.has("sinks/text")) reader.read_text("sinks/text");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const int file = ::memfd_create("input", MFD_CLOEXEC);
  std::string bytes(reinterpret_cast<const char*>(data), size);
  testing::repair_checksums(bytes);
  if (file < 0 || ::ftruncate(file, 0) != 0 ||
      ::pwrite(file, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    std::abort();
  const std::string path = fmt::format("/proc/self/fd/{}", file);
  read_as([&] { runfile::read_recommend_run(path); }) || read_as([&] { runfile::read_experiment_run(path); }) ||
      read_as([&] { runfile::read_attention_run(path); }) || read_as([&] { read_sweep(path); });
  return 0;
}
