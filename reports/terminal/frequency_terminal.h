#pragma once

#include "analyses/frequency_reading.h"
#include "reports/page/table.h"

#include <string>
#include <vector>

namespace gainlens::reports {

/// The trend of each quantity of each layer.
Table frequency_table(const analyses::FrequencyReading& reading);

/// The trends of the placebos, and the difference to each. Without placebos it has no rows.
Table frequency_placebo_table(const analyses::FrequencyReading& reading);

/// What was read: "arm bft, seed 0: 40 users, 400 positions", and the items.
std::vector<std::string> frequency_lead(const analyses::FrequencyReading& reading);

/// What the intervals say: a sentence for each quantity, each followed by those on its placebos.
std::vector<std::string> frequency_sentences(const analyses::FrequencyReading& reading);

/// What the columns mean, and what they cannot show.
std::vector<std::string> frequency_notes(const analyses::FrequencyReading& reading);

/// The result for one arm as text for a terminal, ended by a line break. For programs: analyses::to_json().
std::string print_frequency(const analyses::FrequencyReading& reading);

}  // namespace gainlens::reports
