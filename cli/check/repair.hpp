// Cuts what is not whole off the end of a log, as the server does at its start. What is cut stays in a file
// beside it, so that nothing is lost.
#pragma once

#include <expected>
#include <string>

#include "cli/check/checked_file.hpp"

namespace weir::check {

// Whether cutting it makes it whole; `last`: no file with anything in it follows in its log.
bool can_be_cut(const CheckedFile& file, bool last);

// The name of the file that has what was cut. The error is fit to print; the log is as it was then.
std::expected<std::string, std::string> cut(const CheckedFile& file);

}  // namespace weir::check
