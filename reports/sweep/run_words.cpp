#include "reports/sweep/run_words.h"

#include "core/error.h"
#include "core/json.h"
#include "reports/page/typography.h"
#include "runfile/run_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

namespace gainlens::reports {
namespace {

std::string file_name(const Json& entry, const char* key) {
  if (!entry.contains(key) || !entry[key].is_string()) return {};
  std::filesystem::path path = entry[key].get<std::string>();
  if (!path.has_filename()) path = path.parent_path();  // "models/plain/"
  return printable(path.filename().string());
}

std::string capitalised(std::string sentence) {
  if (!sentence.empty() && sentence[0] >= 'a' && sentence[0] <= 'z')
    sentence[0] = static_cast<char>(sentence[0] - 'a' + 'A');
  return sentence;
}

/// What each run says; one entry where all say the same.
std::vector<std::string> said_by(Runs runs, const RunSentence& sentence) {
  std::vector<std::string> said;
  for (const SweepRun& run : runs) said.push_back(sentence(run));
  if (std::all_of(said.begin(), said.end(), [&](const std::string& other) { return other == said.front(); }))
    said.resize(1);
  return said;
}

std::string joined(Runs runs, const std::vector<std::string>& said) {
  if (said.size() == 1) return said.front();
  std::string text;
  for (std::size_t i = 0; i < said.size(); ++i) {
    if (!said[i].empty()) text += fmt::format("{}{}: {}", text.empty() ? "" : " ", runs[i].label(), said[i]);
  }
  return text;
}

}  // namespace

LastStart last_start(const SweepRun& run) {
  const runfile::RunLog log = runfile::RunLog::read(run.reader().path().parent_path());
  if (log.starts().empty() || !log.starts().back().is_object()) return {};
  const Json& entry = log.starts().back();
  const auto text = [&](const char* key) {
    return entry.contains(key) && entry[key].is_string() ? printable(entry[key].get<std::string>()) : std::string();
  };
  LastStart start{file_name(entry, "model"), file_name(entry, "text"), text("time"), text("gainlens")};
  if (start.text.empty()) start.text = file_name(entry, "tokens");
  return start;
}

std::string short_digest(const std::string& digest) {
  return digest.size() == 64 ? digest.substr(0, 12) : digest;
}

std::string weights_digest(const SweepRun& run) {
  std::string text;
  for (const auto& [file, digest] : run.request().model) {
    if (file != "config.json") text += (text.empty() ? "" : ", ") + short_digest(digest);
  }
  return text;
}

std::string model_name(const SweepRun& run) {
  std::string name = run.of(last_start).model;
  for (const std::string_view extension : {".gguf", ".safetensors"}) {
    if (name.size() > extension.size() && name.ends_with(extension)) name.resize(name.size() - extension.size());
  }
  return name.empty() ? "weights " + printable(weights_digest(run)) : name;
}

std::string text_name(const SweepRun& run) {
  const std::string& name = run.of(last_start).text;
  return name.empty() ? "text " + printable(short_digest(run.request().text)) : name;
}

std::string each_run_said(Runs runs, const RunSentence& sentence) {
  return joined(runs, said_by(runs, sentence));
}

std::string sentences_of(Runs runs, const RunSentence& sentence) {
  const std::vector<std::string> said = said_by(runs, sentence);
  return said.size() == 1 ? capitalised(said.front()) : joined(runs, said);
}

std::string runs_said(Runs runs, const RunSentence& phrase) {
  std::vector<std::pair<std::string, std::string>> said;  // phrase, labels
  for (const SweepRun& run : runs) {
    const std::string text = phrase(run);
    if (text.empty()) continue;
    const auto same = std::find_if(said.begin(), said.end(), [&](const auto& entry) { return entry.first == text; });
    if (same == said.end()) {
      said.emplace_back(text, run.label());
    } else {
      same->second += ", " + run.label();
    }
  }
  if (said.size() == 1) return said.front().first;
  std::string text;
  for (const auto& [words, labels] : said) text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", words, labels);
  return text;
}

std::string bos_sentence(Runs runs) {
  return fmt::format("BOS policy: {}.", runs_said(runs, [](const SweepRun& run) {
                       return run.request().bos_policy +
                              (run.request().bos ? "" : "; no BOS token is put in front, so BOS is an ordinary token");
                     }));
}

std::string overlay_sentence(Runs runs) {
  return runs.size() > 1 ? " Each run has its colour, marker and dash." : "";
}

std::string label_html(Runs runs, const SweepRun& run) {
  return runs.size() > 1 ? fmt::format("<b>{}.</b> ", escape_html(run.label())) : "";
}

std::vector<std::string> labels_of(Runs runs) {
  std::vector<std::string> labels;
  for (const SweepRun& run : runs) {
    if (runs.size() > 1) labels.push_back(run.label());
  }
  return labels;
}

}  // namespace gainlens::reports
