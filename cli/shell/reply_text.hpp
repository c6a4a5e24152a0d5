// Replies as redis-cli prints them.
#pragma once

#include <string>

#include "cli/client/reply.hpp"

namespace weir::shell {

enum class Output { formatted, raw, csv, json, quoted_json };

struct Delimiters {
  std::string element = "\n";  // between elements, raw (-d)
  std::string reply = "\n";    // after a reply, raw (-D)
};

// `prose`: a reply made for reading (INFO) is printed as it is, whatever the output and with nothing behind
// it.
std::string reply_text(const client::Reply&, Output, const Delimiters&, bool prose = false);

// Whether a command's reply is text made for reading.
bool answers_in_prose(const std::vector<std::string>& command);

}  // namespace weir::shell
