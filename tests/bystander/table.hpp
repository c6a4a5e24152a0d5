// The table of a run, as Markdown: how long bystanders waited, by misdeed and transport.
#pragma once

#include <string>
#include <vector>

#include "tests/bystander/watch.hpp"

namespace weir::bystander {

// One misdeed over one transport, in order of execution; its index is Wait::during.
struct Row {
  std::string misdeed;
  std::string over;  // the attacker's transport
  std::uint64_t deeds = 0;
  std::int64_t grown_bytes = 0;  // the largest growth of the server's resident memory during it
};

std::string table_of(const std::vector<Row>& rows, const Watch& watch);

}  // namespace weir::bystander
