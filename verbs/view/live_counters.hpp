// The files of the port's counters: they say what is so when they are read.
//
// In the tree they are ordinary files, written anew when a program opens one, whatever way it names it, and
// when it reads one that it holds open from the beginning again. What they say comes from Weir's
// libibverbs.so.1, which is loaded for it when the first is opened.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string_view>

namespace weir::verbs {

// After the program opened `path`: brings the file up to date if it is such a file.
void opened_for_reading(int fd, std::string_view path);
// Before the program reads from `fd`, from that offset, or from where it is (nullopt): so does it if that is
// the beginning.
void about_to_read(int fd, std::optional<off_t> offset);

}  // namespace weir::verbs
