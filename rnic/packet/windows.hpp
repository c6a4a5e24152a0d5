// The windows of this process, one for each destination process that a queue pair sends packets to. They live
// as long as the queue pairs that share them. Threading: any thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "rnic/packet/window.hpp"
#include "rnic/types.hpp"

namespace weir::rnic::packet {

class Windows {
 public:
  // `process`: as of PacketRoute.
  std::shared_ptr<Window> to(const Gid& destination, std::uint64_t process);

 private:
  std::mutex mutex_;
  std::map<std::pair<Gid, std::uint64_t>, std::weak_ptr<Window>> windows_;
};

}  // namespace weir::rnic::packet
