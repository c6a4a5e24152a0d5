// Which sockets become rsockets.
//
// All internet streams and datagrams, or, where /etc/rdma/rsocket/preload_config has lines, those that one of
// them names: "program domain type protocol", each "*" for any (INET or INET6; STREAM or DGRAM; TCP or UDP);
// a program by the beginning of its name; "#" begins a comment. As rdma-core's. What is neither TCP nor UDP
// (a ping, SCTP, MPTCP) is left alone.
#pragma once

#include <istream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weir::rspreload {

class Choice {
 public:
  static Choice read(std::istream& lines);
  static const Choice& of_this_program();

  // `type` without SOCK_NONBLOCK and SOCK_CLOEXEC.
  bool takes(std::string_view program, int domain, int type, int protocol) const;

 private:
  struct Line {
    std::string program;  // "*": any
    std::optional<int> domain, type, protocol;
  };
  std::vector<Line> lines_;
};

}  // namespace weir::rspreload
