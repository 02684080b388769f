#include "cli/application.h"
#include "cli/command_options.h"
#include "cli/given_run.h"
#include "cli/interruption.h"
#include "cli/model_options.h"
#include "cli/training_options.h"
#include "core/check.h"
#include "core/console.h"
#include "core/counted.h"
#include "core/json.h"
#include "core/listener.h"
#include "data/question_split.h"
#include "language/finetune.h"
#include "models/checkpoint/compute_dtype.h"
#include "runfile/process_group.h"
#include "training/replicas.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gainlens::cli {
namespace {

struct TrainFinetuneArguments {
  std::string model;
  std::string task, data, test;
  std::vector<std::string> arms = {"sft"};
  std::vector<std::string> noise = {"0"};
  std::int64_t seeds = 1;
  std::optional<std::int64_t> passages;
  std::uint64_t data_seed = 0;
  data::AskedSizes sizes;
  language::FinetuneSettings settings;
  std::optional<double> precision_learning_rate;
  std::string dtype = "float32";
  std::string spread = "batches";
  std::string out;
};

constexpr std::int64_t default_passages = 5;

/// Passages of a prompt of nq.
std::int64_t passages_of(const TrainFinetuneArguments& arguments) {
  return arguments.passages.value_or(default_passages);
}

std::string name_of_data(const TrainFinetuneArguments& arguments) {
  const std::filesystem::path file = arguments.data.empty() ? arguments.task : arguments.data;
  std::string name = file.filename().string();
  if (arguments.task == "nq") name += fmt::format(", {} passages", passages_of(arguments));
  if (!arguments.test.empty()) name += ", tested on " + std::filesystem::path(arguments.test).filename().string();
  return name;
}

std::vector<data::Question> questions_of(const TrainFinetuneArguments& arguments, const std::string& file, bool leads) {
  if (arguments.task == "squad") return data::read_squad(file);
  if (arguments.task != "nq") return data::read_prompts_and_answers(file);
  data::OpenPrompts made = data::open_prompts(data::read_nq_open(file), passages_of(arguments), arguments.data_seed);
  if (made.distractors == data::Distractors::pool && leads)
    tell_warning(
        "{}: has too few retrieved passages; distractors are gold passages of other questions, without the answer, "
        "which are easier to tell apart. The paper's are retrieved",
        printable(file));
  return std::move(made.questions);
}

/// The sizes of the parts. Those that were shortened to fit are told.
data::SplitSizes sizes_of(const data::AskedSizes& asked, const std::vector<data::Question>& questions,
                          const std::vector<data::Question>& test, bool tells) {
  const std::int64_t found = data::distinct_questions(questions), test_questions = data::distinct_questions(test);
  const data::SplitSizes sizes =
      data::fitted_sizes(asked, found, test.empty() ? std::nullopt : std::optional<std::int64_t>(test_questions));
  const auto tell = [&](const char* option, std::int64_t size, std::int64_t of, bool given) {
    if (!given && size < data::default_rows && tells)
      tell_note("{}: {}, because the file has {} (the default is {})", option, size, counted(of, "question"),
                data::default_rows);
  };
  tell("--train-rows", sizes.training, found, asked.training.has_value());
  tell("--validation-rows", sizes.validation, test.empty() ? found : test_questions, asked.validation.has_value());
  return sizes;
}

/// @param leads  of several processes, one tells what is to be told
data::QuestionSplit split_of(const TrainFinetuneArguments& arguments, bool leads, bool quiet) {
  const bool known = arguments.task == "squad" || arguments.task == "nq";
  CHECK(!known || !arguments.data.empty(), "--data: is missing; give the file with the questions of --task {}",
        arguments.task);
  CHECK(known || arguments.data.empty(), "--data: --task names the file already ({}); leave --data out",
        printable(arguments.task, 60));
  CHECK(known || arguments.task.ends_with(".jsonl") || arguments.task.ends_with(".jsonl.gz"),
        "--task: '{}'; must be squad, nq or a file *.jsonl", printable(arguments.task, 60));
  std::vector<data::Question> questions = questions_of(arguments, known ? arguments.data : arguments.task, leads);
  std::vector<data::Question> test;
  if (!arguments.test.empty()) test = questions_of(arguments, arguments.test, leads);
  const data::SplitSizes sizes = sizes_of(arguments.sizes, questions, test, leads && !quiet);
  data::QuestionSplit split =
      arguments.test.empty() ? data::split_questions(std::move(questions), sizes, arguments.data_seed)
                             : data::split_questions(std::move(questions), std::move(test), sizes, arguments.data_seed);
  if (quiet || !leads) return split;
  tell_note("{} to learn from, {} to choose the best epoch by, {} to test on; no question is in two of them{}",
            counted(split.training.size(), "row"), split.validation.size(), split.test.size(),
            split.selection_rows > 0
                ? fmt::format(", but for the first {} of the test, which choose too", split.selection_rows)
                : "");
  if (split.repeated > 0)
    tell_note("{} left out, whose text is in an earlier part too", counted_are(split.repeated, "question"));
  return split;
}

constexpr TrainedMetric printed_metrics[] = {{"exact_match", "exact match"}, {"f1", "F1"}};

/// Refuses options that change nothing in the task, or in any of the arms.
void check_idle_options(const TrainFinetuneArguments& arguments) {
  CHECK(!arguments.passages || arguments.task == "nq", "--passages: is an option of --task nq; leave it out");
  // A gate learns as other matrices do.
  const bool has_filter = std::ranges::any_of(arguments.arms, [](const std::string& name) {
    const bft::Arm arm = language::finetune_arm(name).filter;
    return arm != bft::Arm::plain && arm != bft::Arm::gate;
  });
  CHECK(!arguments.precision_learning_rate || has_filter,
        "--precision-learning-rate: is an option of the filter; give --arm bft too");
}

void add_lora_options(CLI::App& command, TrainFinetuneArguments& arguments) {
  language::LoraSettings& lora = arguments.settings.lora;
  command
      .add_option("--lora-rank", lora.rank,
                  "Rank of an adapter (LoRA) that is trained while the weights stay as they are; 0: all weights are "
                  "trained")
      ->capture_default_str();
  command.add_option("--lora-alpha", lora.alpha,
                     "What the adapter adds is multiplied by this number over the rank; without it twice the rank");
  add_name_list(command, "--lora-targets", lora.targets,
                "Projections with an adapter: q, k, v, o, gate, up, down; several with commas. Without it all that the "
                "model has");
  command.add_flag("--lora-merge", lora.merge,
                   "Write the whole checkpoint in place of the adapter, as arms with a filter always do");
}

void run(const TrainFinetuneArguments& arguments, const GlobalOptions& global) {
  language::FinetuneRequest request;
  request.data_name = name_of_data(arguments);
  if (arguments.task == "squad" || arguments.task == "nq") request.task = arguments.task;
  if (arguments.task == "nq") request.passages = passages_of(arguments);
  request.arms = arguments.arms;
  request.noise = numbers_of(arguments.noise, "--noise");
  request.data_seed = arguments.data_seed;
  request.seed = global.seed;
  request.seeds = arguments.seeds;
  request.settings = arguments.settings;
  request.settings.dtype = models::parse_compute_dtype(arguments.dtype, "--dtype");
  if (arguments.precision_learning_rate) request.settings.precision_learning_rate = *arguments.precision_learning_rate;
  request.out = arguments.out;
  request.threads = global.threads > 0 ? global.threads : at::get_num_threads();
  request.spread = parse_spread(arguments.spread);
  request.quiet = global.quiet;
  request.program_version = GAINLENS_VERSION;
  language::check_request(request);
  check_idle_options(arguments);
  check_can_be_run_folder(arguments.out);
  data::check_sizes(
      {arguments.sizes.training.value_or(1), arguments.sizes.validation.value_or(1), arguments.sizes.test});
  data::check_passages(passages_of(arguments));
  const runfile::ProcessGroup group = runfile::read_process_group();
  request.model = locate_language_model(arguments.model, "finetune");
  check_lies_outside_model(arguments.out, request.model);
  request.split = split_of(arguments, group.rank == 0, global.quiet);
  const ScopedInterruption told(arguments.out, finished_trainings, group.rank == 0);
  const auto replicas = training::connect_replicas(group, process_environment());
  const std::vector<experiment::Outcome> outcomes = language::finetune(request, *replicas);
  if (replicas->leads()) print_trainings(outcomes, {printed_metrics, "question", arguments.out}, global.json);
}

}  // namespace

void add_train_finetune(CLI::App& train, const GlobalOptions& global, Action& action) {
  std::string arms = "Arms:\n";
  for (const language::FinetuneArm& arm : language::finetune_arms())
    arms += fmt::format("  {:<12} {}\n", arm.name, arm.help);
  CLI::App* command = add_subcommand(
      train, {"finetune", "Fine-tune a language model on questions, and score its answers to held-out ones"},
      "gainlens train finetune MODEL --task squad --data dev-v1.1.json.gz --train-rows 64 --validation-rows 32 "
      "--test-rows 200 --noise 0 40 --arm sft,focal --seeds 2 --out run",
      arms +
          "A training may be killed at any moment. The same command called again continues and ends with the same\n"
          "numbers. More arms, seeds and levels of noise may be asked for in the same folder. docs/finetune.md has "
          "more.\n"
          "torchrun --nproc-per-node 2 --no-python gainlens train finetune ... trains with 2 processes.");
  auto arguments = std::make_shared<TrainFinetuneArguments>();
  add_model_option(*command, arguments->model);
  command
      ->add_option("--task", arguments->task,
                   "squad, nq, or a file *.jsonl with lines {\"prompt\": \"..\", \"answers\": [\"..\"]}")
      ->required();
  command->add_option("--data", arguments->data,
                      "File of squad (SQuAD v1.1 JSON) or nq (JSON Lines of Lost in the Middle), plain or gzipped");
  command->add_option(
      "--test", arguments->test,
      "A second file to test on; its first rows also choose the best epoch, as in the paper. Without it "
      "--data is split by articles or questions");
  command->add_option(
      "--train-rows", arguments->sizes.training,
      fmt::format("Rows to learn from (default: {}, or 3 of 5 parts of a file that is too small)", data::default_rows));
  command->add_option(
      "--validation-rows", arguments->sizes.validation,
      fmt::format("Rows to choose the best epoch by (default: {}, or 1 of 5 parts)", data::default_rows));
  command->add_option("--test-rows", arguments->sizes.test, "Rows to test on; 0: all that are left")
      ->capture_default_str();
  command->add_option("--data-seed", arguments->data_seed, "Of the split, the places of passages and the noise")
      ->capture_default_str();
  command->add_option("--passages", arguments->passages, "nq: passages of a prompt, one of them the gold one")
      ->default_str(std::to_string(default_passages));
  add_name_list(*command, "--noise", arguments->noise,
                "Percent of the words of training answers that are replaced by words of other answers; several "
                "levels, with blanks or commas, are trained one after the other")
      ->allow_extra_args();
  add_name_list(*command, "--arm", arguments->arms, "What to train, see below; several with commas");
  command->add_option("--seeds", arguments->seeds, "Number of seeds: --seed, --seed + 1, ...")->capture_default_str();
  language::FinetuneSettings& settings = arguments->settings;
  command->add_option("--epochs", settings.epochs, "Epochs")->capture_default_str();
  command->add_option("--batch", settings.batch, "Rows of a step")->capture_default_str();
  command->add_option("--learning-rate", settings.learning_rate, "Of AdamW")->capture_default_str();
  command->add_option("--weight-decay", settings.weight_decay, "Of matrices")->capture_default_str();
  command->add_option("--warmup-ratio", settings.warmup_ratio, "Share of the steps in which the learning rate grows")
      ->capture_default_str();
  command->add_option("--max-gradient-norm", settings.max_gradient_norm, "0: no clipping")->capture_default_str();
  command
      ->add_option("--max-length", settings.max_length, "Most tokens of a row to learn from; longer ones are left out")
      ->capture_default_str();
  command
      ->add_option("--tokens-at-once", settings.tokens_at_once,
                   "Tokens of rows that go through the model together, without seeing each other; fewer take less "
                   "memory and more time")
      ->capture_default_str();
  command->add_flag("--recompute", settings.recompute,
                    "Keep no activations of a layer and compute it again in the backward pass: less memory, more time, "
                    "the same bits");
  command
      ->add_option("--dtype", arguments->dtype,
                   "Of the computation: float32, or bfloat16 with weights and optimiser in float32 (or fp32, bf16)")
      ->capture_default_str();
  command
      ->add_option("--precision-learning-rate", arguments->precision_learning_rate,
                   "Factor on the learning rate of a filter's parameters")
      ->default_str(fmt::format("{}", settings.precision_learning_rate));
  add_lora_options(*command, *arguments);
  add_spread_option(*command, arguments->spread);
  command->add_option("--max-new", settings.max_new, "Most tokens of an answer in the test")->capture_default_str();
  command->add_option("--out", arguments->out, "Run folder; the same request continues in it")->required();
  set_action(*command, action, [arguments, &global] { run(*arguments, global); });
}

}  // namespace gainlens::cli
