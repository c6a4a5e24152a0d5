// Cuts the incomplete end off a log, as the server does when it starts. The cut part is kept in a file beside
// it, so that nothing is lost.
#pragma once

#include <expected>
#include <string>

#include "cli/check/checked_file.hpp"

namespace weir::check {

// Whether cutting makes the file whole; `last`: no file with contents follows it in its log.
bool can_be_cut(const CheckedFile& file, bool last);

// Returns the name of the file with the cut part. The error is for a user; the log is then unchanged.
std::expected<std::string, std::string> cut(const CheckedFile& file);

}  // namespace weir::check
