// Errors of the link: an errno's meaning plus a sentence that names the cause and the next step.
#pragma once

#include <cerrno>
#include <cstring>
#include <expected>
#include <string>
#include <system_error>
#include <utility>

#include "link/same_host.hpp"

namespace weir::link {

inline std::unexpected<Error> failure(std::errc code, std::string what) {
  return std::unexpected(Error{code, std::move(what)});
}

// `what` is completed with the errno's own text: "cannot open X: Permission denied; <next step>". When
// descriptors ran out, the next step is always the same, whatever failed for lack of them.
inline std::unexpected<Error> failure_errno(int error, const std::string& what, std::string next_step = {}) {
  if (error == EMFILE) next_step = "raise the limit of open files (ulimit -n)";
  if (error == ENFILE) next_step = "raise the system's limit of open files (sysctl fs.file-max)";
  std::string text = what + ": " + std::strerror(error);
  if (!next_step.empty()) text += "; " + next_step;
  return failure(static_cast<std::errc>(error), std::move(text));
}

}  // namespace weir::link
