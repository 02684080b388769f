#include "recommend/baselines.h"

#include "core/check.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace gainlens::recommend {
namespace {

at::Tensor counts_of(const data::LeaveOneOut& split) {
  const auto& counts = split.training_counts();
  return at::tensor(std::vector<std::int64_t>(counts.begin() + 1, counts.end()), at::kLong).to(at::kFloat);
}

class Popularity : public Scorer {
 public:
  explicit Popularity(const data::LeaveOneOut& split) : counts_(counts_of(split)) {}

  at::Tensor represent(std::span<const data::History> histories) override { return at::ones({std::ssize(histories)}); }
  at::Tensor scores(const at::Tensor& users, std::int64_t first, std::int64_t count) override {
    return counts_.narrow(0, first, count).expand({users.size(0), count}).clone();
  }

 private:
  at::Tensor counts_;  // [item]
};

class Markov : public Scorer {
 public:
  explicit Markov(const data::LeaveOneOut& split) {
    const at::Tensor counts = counts_of(split);
    share_ = counts / (counts.sum() + 1);
    for (std::int64_t user = 0; user < split.training_users(); ++user) {
      const auto items = split.training(user);
      for (std::size_t i = 1; i < items.size(); ++i) steps_.emplace_back(items[i - 1], items[i]);
    }
    std::sort(steps_.begin(), steps_.end());
  }

  /// Ids of the last items.
  at::Tensor represent(std::span<const data::History> histories) override {
    std::vector<std::int64_t> last;
    for (const auto& history : histories) last.push_back(history.items.empty() ? 0 : history.items.back());
    return at::tensor(last, at::kLong);
  }
  at::Tensor scores(const at::Tensor& users, std::int64_t first, std::int64_t count) override {
    at::Tensor found = share_.narrow(0, first, count).expand({users.size(0), count}).clone();
    auto* const score = found.mutable_data_ptr<float>();
    for (std::int64_t user = 0; user < users.size(0); ++user) {
      const auto item = static_cast<data::ItemId>(users.const_data_ptr<std::int64_t>()[user]);
      const auto begin = std::lower_bound(steps_.begin(), steps_.end(), std::pair<data::ItemId, data::ItemId>(item, 0));
      for (auto step = begin; step != steps_.end() && step->first == item; ++step) {
        const std::int64_t column = step->second - 1 - first;
        if (column >= 0 && column < count) score[user * count + column] += 1;
      }
    }
    return found;
  }

 private:
  at::Tensor share_;                                          // [item], below 1: it decides between equal counts alone
  std::vector<std::pair<data::ItemId, data::ItemId>> steps_;  // from, to; sorted
};

}  // namespace

std::unique_ptr<Scorer> make_baseline(std::string_view name, const data::LeaveOneOut& split) {
  if (name == "popularity") return std::make_unique<Popularity>(split);
  ASSERT(name == "markov", "no baseline '{}'", name);
  return std::make_unique<Markov>(split);
}

}  // namespace gainlens::recommend
