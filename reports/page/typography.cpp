#include "reports/page/typography.h"

#include "core/terminal_text.h"

#include <array>

namespace gainlens::reports {
namespace {

struct Symbol {
  std::string_view text;
  std::string_view html;
  std::string_view latex;
  std::string_view plot;
};

/// Longer ones first, where one begins with another.
constexpr std::array symbols = {
    Symbol{"n_eff", "<i>n</i><sub>eff</sub>", "$n_{\\mathrm{eff}}$", "{/:Italic n}_{eff}"},
    Symbol{"lambda_obs", "<i>λ</i><sub>obs</sub>", "$\\lambda_{\\mathrm{obs}}$", "λ_{obs}"},
    Symbol{"λ_obs", "<i>λ</i><sub>obs</sub>", "$\\lambda_{\\mathrm{obs}}$", "λ_{obs}"},
    Symbol{"lambda*", "<i>λ</i>*", "$\\lambda^{*}$", "λ*"},
    Symbol{"λ*", "<i>λ</i>*", "$\\lambda^{*}$", "λ*"},
    Symbol{"T_min", "<i>T</i><sub>min</sub>", "$T_{\\min}$", "{/:Italic T}_{min}"},
    Symbol{"sigma0^2", "<i>σ</i><sub>0</sub><sup>2</sup>", "$\\sigma_0^2$", "σ_0^2"},
    Symbol{"key 0", "BOS", "BOS", "BOS"},  // what the analyses and run.h5 call by its position has one name on a page
    Symbol{"lambda", "<i>λ</i>", "$\\lambda$", "λ"},
    Symbol{"sigma", "<i>σ</i>", "$\\sigma$", "σ"},
    Symbol{"delta", "<i>δ</i>", "$\\delta$", "δ"},
    Symbol{"epsilon", "<i>ε</i>", "$\\epsilon$", "ε"},
    Symbol{"λ", "<i>λ</i>", "$\\lambda$", "λ"},
    Symbol{"ν", "<i>ν</i>", "$\\nu$", "ν"},
    Symbol{"δ", "<i>δ</i>", "$\\delta$", "δ"},
    Symbol{"ε", "<i>ε</i>", "$\\epsilon$", "ε"},
    Symbol{"μ", "<i>μ</i>", "$\\mu$", "μ"},
    Symbol{"α", "<i>α</i>", "$\\alpha$", "α"},
    Symbol{"σ", "<i>σ</i>", "$\\sigma$", "σ"},
    Symbol{"nu", "<i>ν</i>", "$\\nu$", "ν"},
    Symbol{"mu", "<i>μ</i>", "$\\mu$", "μ"},
    Symbol{"K", "<i>K</i>", "$K$", "{/:Italic K}"},
    Symbol{"T", "<i>T</i>", "$T$", "{/:Italic T}"},
    Symbol{"S", "<i>S</i>", "$S$", "{/:Italic S}"},
    Symbol{"r", "<i>r</i>", "$r$", "{/:Italic r}"},
    Symbol{"p", "<i>p</i>", "$p$", "{/:Italic p}"},
};

constexpr std::array characters = {
    Symbol{"&", "&amp;", "\\&", "\\&"},
    Symbol{"<", "&lt;", "\\textless{}", "<"},
    Symbol{">", "&gt;", "\\textgreater{}", ">"},
    Symbol{"\"", "&quot;", "''", "\\\""},
    Symbol{"'", "&#39;", "'", "'"},
    Symbol{"%", "%", "\\%", "%"},
    Symbol{"$", "$", "\\$", "$"},
    Symbol{"#", "#", "\\#", "#"},
    Symbol{"_", "_", "\\_", "\\_"},
    Symbol{"{", "{", "\\{", "\\{"},
    Symbol{"}", "}", "\\}", "\\}"},
    Symbol{"~", "~", "\\textasciitilde{}", "\\~"},
    Symbol{"^", "^", "\\textasciicircum{}", "\\^"},
    Symbol{"\\", "\\", "\\textbackslash{}", "\\\\"},
    Symbol{"[", "[", "{[}", "["},  // a row that begins with [ would be read as an argument of the line break above it
    Symbol{"−", "−", "$-$", "−"},
    Symbol{"–", "–", "--", "–"},
    Symbol{"±", "±", "$\\pm$", "±"},
    Symbol{"×", "×", "$\\times$", "×"},
    Symbol{"→", "→", "$\\to$", "→"},
    Symbol{"≥", "≥", "$\\geq$", "≥"},
    Symbol{"≤", "≤", "$\\leq$", "≤"},
    Symbol{"‖", "‖", "$\\|$", "‖"},
    Symbol{"Δ", "Δ", "$\\Delta$", "Δ"},
};

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

/// Whether a symbol stands at `at` as a word of its own.
bool stands_alone(std::string_view text, std::size_t at, std::size_t size) {
  if (at > 0 && (is_word(text[at - 1]) || text[at - 1] == '\'')) return false;
  if (at > 1 && text[at - 1] == '/' && is_word(text[at - 2])) return false;  // a dataset's name: summary/n_eff
  const std::size_t end = at + size;
  return end >= text.size() || !is_word(text[end]);
}

constexpr Symbol minus{"-", "−", "$-$", "−"};

/// A quotation mark in front of a word. LaTeX has one of its own for it.
constexpr Symbol opening_quote{"\"", "&quot;", "``", "\\\""};

bool opens_quote(std::string_view text, std::size_t at) {
  return text[at] == '"' && (at == 0 || text[at - 1] == ' ' || text[at - 1] == '(');
}

/// A hyphen before a number and behind no word: "-0.1" and "[-0.1", not "0-3".
bool is_minus(std::string_view text, std::size_t at) {
  if (text[at] != '-' || at + 1 >= text.size() || text[at + 1] < '0' || text[at + 1] > '9') return false;
  return at == 0 || (!is_word(text[at - 1]) && text[at - 1] != '-' && text[at - 1] != '.');
}

const Symbol* symbol_at(std::string_view text, std::size_t at) {
  for (const Symbol& symbol : symbols) {
    if (text.substr(at).starts_with(symbol.text) && stands_alone(text, at, symbol.text.size())) return &symbol;
  }
  return nullptr;
}

const Symbol* character_at(std::string_view text, std::size_t at) {
  for (const Symbol& symbol : characters) {
    if (text.substr(at).starts_with(symbol.text)) return &symbol;
  }
  return nullptr;
}

std::string typeset(std::string_view given, std::string_view Symbol::*medium, bool mathematics) {
  const std::string text = terminal_text(given);  // a name from a file may hold control characters
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const Symbol* symbol = mathematics ? symbol_at(text, at) : nullptr;
    if (mathematics && is_minus(text, at)) symbol = &minus;
    if (opens_quote(text, at)) symbol = &opening_quote;
    if (symbol == nullptr) symbol = character_at(text, at);
    if (symbol == nullptr) {
      result += text[at++];
    } else {
      result += symbol->*medium;
      at += symbol->text.size();
    }
  }
  return result;
}

}  // namespace

std::string to_html(std::string_view text) {
  return typeset(text, &Symbol::html, true);
}

std::string to_latex(std::string_view text) {
  return typeset(text, &Symbol::latex, true);
}

std::string to_plot(std::string_view text) {
  return typeset(text, &Symbol::plot, true);
}

std::string escape_html(std::string_view text) {
  return typeset(text, &Symbol::html, false);
}

std::string paragraphs_of(const std::vector<std::string>& texts) {
  std::string html;
  for (const std::string& text : texts) html += "<p>" + escape_html(text) + "</p>\n";
  return html;
}

std::string escape_latex(std::string_view text) {
  return typeset(text, &Symbol::latex, false);
}

}  // namespace gainlens::reports
