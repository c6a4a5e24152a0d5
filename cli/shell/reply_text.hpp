// Prints replies as redis-cli does.
#pragma once

#include <string>

#include "cli/client/reply.hpp"

namespace weir::shell {

enum class Output { formatted, raw, csv, json, quoted_json };

struct Delimiters {
  std::string element = "\n";  // between elements in raw output (-d)
  std::string reply = "\n";    // after each reply in raw output (-D)
};

// `prose`: a reply made for reading (INFO) is printed unchanged, whatever the output
// format, with nothing after it.
std::string reply_text(const client::Reply&, Output, const Delimiters&, bool prose = false);

// Whether a command's reply is text for people to read.
bool answers_in_prose(const std::vector<std::string>& command);

}  // namespace weir::shell
