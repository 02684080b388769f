#pragma once

/// THE list of the scalars of one query of one head: one line for each. From it come the fields that the kernels return
/// (kernels/attention_statistics.h, kernels/query_fields.h), the datasets of run.h5 with their units and meanings
/// (runfile/schema.h), what a sweep reduces (sweep/chunk_reducer.h), and the labels of reports. A new scalar takes a
/// line here and its formula in each backend of src/kernels.
///
/// X(name, returned, label, unit, unit of the variance, window, stored, since, meaning)
///   returned  always, or the member of kernels::ReturnedFields that asks for it
///   label     as reports show it, with the symbols of reports/page/typography.h
///   unit      "value" is the unit of the value vectors
///   window    the queries that /summary/<name> is a mean over
///   stored    everywhere (summary with variance, profile, queries), summary (with variance), nowhere
///   since     the first statistics version whose runs hold it
/// S, lambda_obs, ln lambda_obs and K are computed for each dimension and then averaged over the head_dim dimensions;
/// n_eff, entropy and the norms are one number for each query. "Other keys" are the keys other than
/// key 0; a query that sees key 0 alone has NaN, and one that does not see key 0 has the value over all keys. With a
/// learned sink logit of mass p_s the weights are p / (1 - p_s). Formulas: docs/method.md, "Statistics of one query".
#define GAINLENS_QUERY_SCALARS(X)                                                                                     \
  X(n_eff, always, "n_eff", "keys", "keys^2", last_quarter, everywhere, 1, "Kish effective number of keys")           \
  X(entropy, entropy, "entropy", "nats", "nats^2", last_quarter, everywhere, 1, "entropy of the attention weights")   \
  X(residual, always, "S", "value^2", "value^4", last_quarter, everywhere, 1, "weighted variance S of the values")    \
  X(observation_precision, always, "lambda_obs", "1/value^2", "1/value^4", last_quarter, everywhere, 1,               \
    "REML observation precision")                                                                                     \
  X(log_observation_precision, log_observation_precision, "ln lambda_obs", "ln(1/value^2)", "1", last_quarter,        \
    everywhere, 1, "log of the REML observation precision")                                                           \
  X(kalman_gain, always, "K", "1", "1", last_quarter, everywhere, 1, "Kalman gain at prior precision 1")              \
  X(kalman_gain_scaled, kalman_gain_scaled, "scaled K", "1", "1", last_quarter, everywhere, 1,                        \
    "Kalman gain of values scaled to unit variance")                                                                  \
  X(without_first_n_eff, without_first, "n_eff without key 0", "keys", "keys^2", second_half, everywhere, 1,          \
    "Kish effective number of the keys other than key 0")                                                             \
  X(without_first_residual, without_first_moments, "S without key 0", "value^2", "value^4", second_half, nowhere, 1,  \
    "weighted variance S of the values of the keys other than key 0")                                                 \
  X(without_first_observation_precision, without_first_moments, "lambda_obs without key 0", "1/value^2", "1/value^4", \
    second_half, nowhere, 1, "REML observation precision of the keys other than key 0")                               \
  X(without_first_kalman_gain, without_first, "K without key 0", "1", "1", second_half, everywhere, 1,                \
    "Kalman gain of the keys other than key 0")                                                                       \
  X(estimate_norm, norms, "norm of e", "value", "value^2", second_half, summary, 2, "L2 norm of the estimate e")      \
  X(gained_estimate_norm, norms, "norm of K o e", "value", "value^2", second_half, summary, 2,                        \
    "L2 norm of K o e at prior precision 1")                                                                          \
  X(without_first_norm, without_first, "norm of e without key 0", "value", "value^2", second_half, summary, 2,        \
    "L2 norm of the estimate without key 0")
