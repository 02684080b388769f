#pragma once

#include <algorithm>
#include <cstdint>

namespace gainlens::recommend {

/// Which end of a sequence has a fixed position.
enum class Alignment {
  end,    ///< the last item has the last position, as with padding on the left
  start,  ///< the first item has position 0, as with padding on the right
};

/// What a model sees of a history.
struct HistoryView {
  std::int64_t positions = 0;  ///< of a longer history it sees the last items alone
  Alignment alignment = Alignment::end;
  bool times = false;  ///< also when each interaction was

  /// How many interactions it sees of a history of `length`.
  std::int64_t seen(std::int64_t length) const { return std::min(length, positions); }
};

}  // namespace gainlens::recommend
