// The windows of this process, one for each destination process that a queue pair sends packets to. They live
// as long as the queue pairs that share them. Threading: any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "rnic/between_hosts/send_line.hpp"
#include "rnic/packet/window.hpp"
#include "rnic/types.hpp"

namespace weir::rnic {

struct SharedWindow : packet::Window {
  SendLine line;
  // It is open, and somebody waits, who needs an Adapter::service() unless one is under way.
  bool lets_somebody_send() const { return waiting() != 0 && open(); }
};

class Windows {
 public:
  // `process`: as of PacketRoute.
  std::shared_ptr<SharedWindow> to(const Gid& destination, std::uint64_t process);
  std::vector<std::shared_ptr<SharedWindow>> all();

 private:
  std::mutex mutex_;
  std::map<std::pair<Gid, std::uint64_t>, std::weak_ptr<SharedWindow>> windows_;
};

}  // namespace weir::rnic
