// Wraps help and messages, which are written for up to 120 columns, at the width of a narrower terminal.
// Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace weir::screen {

// The text with no line wider than `columns` that can be broken between words; a word that is wider stays
// whole. 0 columns: as it is, and so is a text that fits. A column is one character of UTF-8.
//
// What continues a line stands below where its text began: behind "  --option VALUE   " below the
// explanation, otherwise below the first word. Lines that were only broken for their width are joined first.
// A command
// ("$ weir run ...") is broken with a backslash, so that it can be pasted.
std::string wrapped(std::string_view text, std::size_t columns);

}  // namespace weir::screen
