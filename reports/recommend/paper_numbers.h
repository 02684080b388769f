#pragma once

#include "analyses/crossed_estimate.h"
#include "analyses/recommender_comparison.h"
#include "analyses/seed_comparison.h"
#include "reports/measured.h"

#include <string>

namespace gainlens::reports {

// Names and numbers of recommenders as the paper prints them. A dash stands for a missing number.

/// "SASRec" for "sasrec"; a backbone that the paper does not have keeps its name.
std::string backbone_title(const std::string& backbone);
/// "bft against plain on Beauty (SASRec)"
std::string shown_title(const analyses::ArmComparison& comparison);

/// ".0881"; a number of at least 1 keeps its digits: "1.2000".
std::string metric_number(double value);
/// ".0881 (.0018)"
std::string metric_number(const analyses::ArmSummary& arm);
std::string metric_number(double mean, double deviation);
/// The same; the mean alone of an arm without training, which is the same with every seed.
std::string metric_number(const Maybe<analyses::ArmSummary>& arm, bool trained);
/// "+3.8%", of a share.
std::string change_number(const Measured& share);
/// "+3.8%", of ln(1 + share).
std::string change_of_log(const Maybe<analyses::CrossedEstimate>& log_ratio);
/// "[+1.0%, +6.7%]", of a log ratio; with fewer than three seeds followed by "(range)" or "(users alone)".
std::string change_interval(const Maybe<analyses::CrossedEstimate>& log_ratio);
std::string change_interval(const Interval& log_ratio);
/// The ends of what change_interval() shows, as shares of the baseline.
Maybe<Interval> change_ends(const Maybe<analyses::CrossedEstimate>& log_ratio);
/// ".087", ".0004", "<.0001"
std::string p_number(const Measured& p);
std::string p_number(const Maybe<analyses::CrossedEstimate>& estimate);

}  // namespace gainlens::reports
