// Lists the connections in the table of this user's processes, for `weir sockets`. Only
// reads the shared file.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <vector>

namespace weir::sockets {

// One end of a connection whose program runs under `weir run --sockets`.
struct ListedEnd {
  std::string local, peer;  // address:port
  std::string program;
  std::uint32_t pid = 0;
  bool sends_by_rdma = false, receives_by_rdma = false;
  std::uint64_t sent_by_rdma = 0;  // bytes
  std::string why_not;             // a sentence without its subject; empty: it may change to RDMA
};

// Only of living processes. A missing table is an empty list; the error is a sentence.
std::expected<std::vector<ListedEnd>, std::string> list_ends(const std::string& runtime_directory);

// The folder of the table, found as the preloaded library finds it; `told`: the value of
// WEIR_RUNTIME_DIR, or null.
std::string runtime_directory(const char* told);

}  // namespace weir::sockets
