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
  /// The token MASK: it stands after a history whose next item is asked for, and in training in the place of items that
  /// are asked for. 0: there is none, and each position of a training history is asked for the item that follows.
  std::int64_t mask = 0;
  double mask_probability = 0;  ///< of each item of a training history, if there is a mask
  /// A shorter history that is ranked gets padding in front, up to this number of positions: id 0 at place 0. 0: none
  std::int64_t padded_to = 0;

  /// How many interactions it sees of a history of `length` whose next item is asked for.
  std::int64_t seen(std::int64_t length) const {
    if (padded_to != 0) return std::min(length, padded_to);
    return std::min(length, mask == 0 ? positions : positions - 1);
  }
};

}  // namespace gainlens::recommend
