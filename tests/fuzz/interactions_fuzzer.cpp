// Reads any bytes as a data set, and as a table. The result is either interactions whose items lie in the catalogue and
// whose split can be made, or InvalidArgument.
#include "core/error.h"
#include "data/interactions.h"
#include "data/leave_one_out.h"
#include "data/strata.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace {

using namespace gainlens;

void read_and_split(const std::string& path, const data::InteractionOptions& options) {
  const data::LeaveOneOut split(data::read_interactions(path, options));
  for (const data::ItemId item : split.interactions().item) {
    if (item < 1 || item > split.items()) std::abort();
  }
  const auto& times = split.interactions().time;
  if (!times.empty() && times.size() != split.interactions().item.size()) std::abort();
  if (split.checksum().size() != 64) std::abort();
  const UserCounts counts = data::user_counts(split);
  composition(counts, by_item_frequency(counts));
  composition(counts, by_user_activity(counts));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const int file = ::memfd_create("input", MFD_CLOEXEC);
  if (file < 0 || ::ftruncate(file, 0) != 0 || ::pwrite(file, bytes, size, 0) != static_cast<ssize_t>(size))
    std::abort();
  const data::InteractionOptions ways[] = {
      {.min_item_count = 1},
      {.ties = {data::TiePolicy::Kind::random, 1}, .min_item_count = 1, .duplicates = data::Duplicates::last},
      {.min_item_count = 1, .columns = {.delimiter = ','}},
      {.min_item_count = 1, .columns = {.user = "1", .item = "2", .time = "3", .delimiter = '\t', .header = false}}};
  for (const data::InteractionOptions& options : ways) {
    try {
      read_and_split(fmt::format("/proc/self/fd/{}", file), options);
    } catch (const InvalidArgument& error) {
      const std::string_view message = error.what();
      if (message.find('\n') != std::string_view::npos) std::abort();  // a message must be one line
    }
  }
  return 0;
}
