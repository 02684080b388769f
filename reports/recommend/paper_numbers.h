#pragma once

#include "analyses/crossed_estimate.h"
#include "analyses/measured.h"
#include "analyses/recommender_comparison.h"
#include "analyses/seed_comparison.h"

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
std::string metric_number(const analyses::Maybe<analyses::ArmSummary>& arm, bool trained);
/// "+3.8%", of a share.
std::string change_number(const analyses::Measured& share);
/// "+3.8%", of ln(1 + share).
std::string change_of_log(const analyses::Maybe<analyses::CrossedEstimate>& log_ratio);
/// "[+1.0%, +6.7%]", of a log ratio; with fewer than three seeds followed by "(range)" or "(users alone)".
std::string change_interval(const analyses::Maybe<analyses::CrossedEstimate>& log_ratio);
std::string change_interval(const analyses::Interval& log_ratio);
/// The ends of what change_interval() shows, as shares of the baseline.
analyses::Maybe<analyses::Interval> change_ends(const analyses::Maybe<analyses::CrossedEstimate>& log_ratio);
/// ".087", ".0004", "<.0001"
std::string p_number(const analyses::Measured& p);
std::string p_number(const analyses::Maybe<analyses::CrossedEstimate>& estimate);

}  // namespace gainlens::reports
