#include "interventions/stream_reading.h"

#include "core/check.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

namespace gainlens::interventions {
namespace {

constexpr std::int64_t logits_per_block = std::int64_t{1} << 23;  // 32 MiB in float32

/// @param logits   [row, vocabulary]
/// @param targets  int64 [row]
/// @returns  float64 [row]
at::Tensor losses_of(const at::Tensor& logits, const at::Tensor& targets) {
  const at::Tensor largest = logits.amax(-1, true);
  const at::Tensor total = (logits - largest).exp_().sum(-1, false, at::kDouble);
  const at::Tensor target = logits.gather(-1, targets.to(logits.device()).unsqueeze(1)).squeeze(1);
  return (total.log() + (largest.squeeze(1).to(at::kDouble) - target.to(at::kDouble))).cpu();
}

class Reader {
 public:
  Reader(hooks::HookedModel& model, std::span<const std::int32_t> tokens, std::int64_t first_read)
      : model_(model), length_(std::ssize(tokens)), first_read_(first_read) {
    targets_ = at::from_blob(const_cast<std::int32_t*>(tokens.data()), {length_}, at::kInt).to(at::kLong).slice(0, 1);
  }

  /// Rows [begin, end) in the widest type of their computation.
  at::Tensor logits(const at::Tensor& stream, std::int64_t begin, std::int64_t end) {
    const at::Tensor found = model_.unembed(stream[0].slice(0, begin, end));
    return found.scalar_type() == at::kDouble ? found : found.to(at::kFloat);
  }
  /// Stores the losses of the rows from `first` on that have a target.
  /// @param rows  [row, vocabulary] from position `begin` on
  void store(const at::Tensor& rows, std::int64_t begin, std::int64_t first, StreamReading& reading) const {
    const std::int64_t from = std::max(begin, first);
    const std::int64_t end = std::min(begin + rows.size(0), first_read_ + std::ssize(reading.losses));
    if (from >= end) return;
    const at::Tensor losses = losses_of(rows.slice(0, from - begin, end - begin), targets_.slice(0, from, end));
    const double* const loss = losses.const_data_ptr<double>();
    for (std::int64_t i = from; i < end; ++i) {
      const double found = loss[i - from];
      if (!std::isfinite(found)) throw_run_failed("output head: the logits at position {} are NaN or infinite", i);
      reading.losses[static_cast<std::size_t>(i - first_read_)] = found;
    }
  }

  double answer(const at::Tensor& logits, const Question& question) const {
    const double found = answer_to(question, logits);
    if (!std::isfinite(found))
      throw_run_failed("output head: the logits at position {} are NaN or infinite", length_ - 1);
    return found;
  }

 private:
  hooks::HookedModel& model_;
  std::int64_t length_, first_read_;
  at::Tensor targets_;  // [position - 1]
};

}  // namespace

std::vector<StreamReading> read_streams(hooks::HookedModel& model, const at::Tensor& base,
                                        const std::vector<ChangedStream>& streams, std::span<const std::int32_t> tokens,
                                        const Question& question) {
  const std::int64_t length = std::ssize(tokens);
  ASSERT(length >= 2 && base.size(1) == length, "a stream of {} positions for {} tokens", base.size(1), length);
  const std::int64_t targets = question.targets.value_or(length - 1), after = question.after;
  const std::int64_t first_read = length - 1 - targets - after;
  ASSERT(targets >= 0 && after >= 0 && first_read >= 0, "{} targets among {} tokens", targets, length);
  // Logits that follow the last target predict nothing that is asked for, unless it is the last token.
  const std::int64_t end_of_targets = after > 0 ? length - 1 - after : length;
  const bool last_apart = after > 0 && question.any();
  Reader reader(model, tokens, first_read);
  std::vector<StreamReading> readings(streams.size() + 1);
  for (StreamReading& reading : readings) reading.losses.resize(static_cast<std::size_t>(targets));
  std::int64_t block = 1;  // the first logits show the size of the vocabulary
  for (std::int64_t begin = first_read; begin < length;) {
    if (begin == end_of_targets) {
      if (!last_apart) break;
      begin = length - 1;
    }
    const std::int64_t end = begin < end_of_targets ? std::min(begin + block, end_of_targets) : length;
    const at::Tensor base_logits = reader.logits(base, begin, end);
    reader.store(base_logits, begin, 0, readings.front());
    StreamReading& first_reading = readings.front();
    if (end == length && question.any()) first_reading.answer = reader.answer(base_logits[-1], question);
    first_reading.largest_logit = std::max(first_reading.largest_logit, base_logits.abs().max().item<double>());
    for (std::size_t i = 0; i < streams.size(); ++i) {
      const std::int64_t first = streams[i].first_position;
      StreamReading& reading = readings[i + 1];
      for (std::int64_t t = begin; t < std::min({end, first, first_read + targets}); ++t)
        reading.losses[static_cast<std::size_t>(t - first_read)] =
            readings.front().losses[static_cast<std::size_t>(t - first_read)];
      if (first >= end) continue;
      const at::Tensor logits = reader.logits(streams[i].normalized, begin, end);
      reader.store(logits, begin, first, reading);
      const double change = (logits - base_logits).abs_().max().item<double>();
      if (!std::isfinite(change))
        throw_run_failed("output head: logits from position {} on are NaN or infinite", begin);
      reading.largest_change = std::max(reading.largest_change, change);
      if (end == length && question.any()) reading.answer = reader.answer(logits[-1], question);
    }
    begin = end;
    block = std::max<std::int64_t>(1, logits_per_block / base_logits.size(-1));
  }
  return readings;
}

}  // namespace gainlens::interventions
