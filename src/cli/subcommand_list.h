#pragma once

// THE list of subcommands, in the order of the help: entry(NAME, "name", on_gpu, draws, "description"). The function
// add_NAME adds it, which commands.h declares; the other words are those of cli::Subcommand.

// clang-format off
#define GAINLENS_SUBCOMMANDS(entry)                                                                                   \
  entry(sweep, "sweep", true, true,                                                                                   \
        "Run a frozen model over text at growing context lengths and store the statistics of every head")             \
  entry(report, "report", false, true,                                                                                \
        "Write the figures and tables of a run as a page like the results section of a paper")                        \
  entry(sinks, "sinks", false, false,                                                                                 \
        "Which keys take most attention, wherever they are? List the sinks of every head with their tokens")          \
  entry(sink_vs_k, "sink-vs-k", false, true,                                                                          \
        "Do heads with much attention on token 0 have a gain near 1? Correlate BOS mass with K over heads")           \
  entry(audit, "audit", false, false,                                                                                 \
        "Check the sink lemma at every head, and compare the run with statements of the paper that are false "        \
        "as printed")                                                                                                 \
  entry(check, "check", false, false,                                                                                 \
        "Look for what is wrong with a run or a training, and say what to do (exit status 1 if so)")                  \
  entry(capture, "capture", true, false,                                                                              \
        "Run a model over a text, or its first tokens, and write the activations at hook sites to a "                 \
        "safetensors file")                                                                                           \
  entry(look, "look", true, false,                                                                                    \
        "Look at one prompt: next tokens, and for every head what it attends to and on how much evidence")            \
  entry(generate, "generate", true, true,                                                                             \
        "Continue a prompt: greedily or at random, from a cache of keys and values")                                  \
  entry(intervene, "intervene", true, true,                                                                           \
        "What does a head mean for the model? Change heads, gates or layers, and measure the change of the "          \
        "loss")                                                                                                       \
  entry(gate_arms, "gate-arms", true, true,                                                                           \
        "Could the gain stand in the place of a gate? Put it there, with controls, as the context grows")             \
  entry(inactive_heads, "inactive-heads", true, true,                                                                 \
        "Which heads does nothing need? Set those to zero that a score calls inactive, and compare the scores")       \
  entry(inspect, "inspect", false, false,                                                                             \
        "Show what a checkpoint, a run or a data set holds, and whether it can be used (exit status 2 if not)")       \
  entry(hooks, "hooks", false, false,                                                                                 \
        "List the hook sites of a model and the shapes of their tensors")                                             \
  entry(train, "train", false, true,                                                                                  \
        "Train a model from scratch")                                                                                 \
  entry(evaluate, "evaluate", false, false,                                                                           \
        "Measure how well a model predicts")                                                                          \
  entry(compare, "compare", false, true,                                                                              \
        "Compare arms of trainings, paired by seed, with tests that count users or questions too")                    \
  entry(gain_by, "gain-by", false, true,                                                                              \
        "When does an arm gain? Compare the arms of runs whose data differ in one number, and draw it")               \
  entry(k_by_frequency, "k-by-frequency", false, true,                                                                \
        "Does the filter of a recommender treat rare items otherwise than frequent ones? Correlate K with "           \
        "counts")                                                                                                     \
  entry(error_by_precision, "error-by-precision", false, true,                                                        \
        "Does the precision of a recommender's filter order users by the error of what it recommends?")               \
  entry(make_histories, "make-histories", false, true,                                                                \
        "Make data for train recommend: thinned or noisy histories, or synthetic ones whose noise is known")          \
  entry(sensitivity, "sensitivity", false, false,                                                                     \
        "Which settings of a recommender matter? Compare each setting of a grid with the reference")                  \
  entry(estimators, "estimators", false, true,                                                                        \
        "Compare every estimator of the variance of an estimate with the truth, by simulation")
// clang-format on
