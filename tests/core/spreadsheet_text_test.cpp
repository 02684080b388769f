#include "core/spreadsheet_text.h"

#include <gtest/gtest.h>

namespace gainlens {
namespace spreadsheet_text_test {

TEST(SpreadsheetText, WhatBeginsAFormula) {
  for (const char* text : {"=1+2", "+a", "-", "@x", "\tx", "\nx", "'=x", "''@", "\uFF1Dx", "+-5", "++5"})
    EXPECT_TRUE(looks_like_formula(text)) << text;
  for (const char* text : {"", "a=b", "-5", "+2.5e3", "'", "'u5", "5"}) EXPECT_FALSE(looks_like_formula(text)) << text;
}

TEST(SpreadsheetText, OneApostropheIsTakenFromAFormulaAlone) {
  EXPECT_EQ(without_formula_mark("'=x"), "=x");
  EXPECT_EQ(without_formula_mark("''=x"), "'=x");
  EXPECT_EQ(without_formula_mark("=x"), "=x");
  EXPECT_EQ(without_formula_mark("'u5"), "'u5");
  EXPECT_EQ(without_formula_mark("'"), "'");
}

}  // namespace spreadsheet_text_test
}  // namespace gainlens
