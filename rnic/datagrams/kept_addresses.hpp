// Destinations of datagrams that wait. A WQE's destination is in the address handle, which a program may
// destroy once it has posted (mckey does).
#pragma once

#include <cstdint>
#include <forward_list>

#include "rnic/queue_pair/send_side.hpp"

namespace weir::rnic {

class KeptAddresses {
 public:
  // Keeps those of all posted WQEs that are not yet executed.
  void keep(SendSide& sends) {
    if (static_cast<std::int32_t>(until_ - sends.executed()) <= 0) {
      paths_.clear();
      until_ = sends.executed();
    }
    for (; until_ != sends.doorbell(); ++until_) {
      DatagramAddress& address = sends.at(until_).datagram;
      if (address.path != nullptr) address.path = &paths_.emplace_front(*address.path);
    }
  }
  void reset() { until_ = 0; }

 private:
  std::forward_list<DatagramPath> paths_;
  std::uint32_t until_ = 0;  // the count of WQEs up to which they are kept
};

}  // namespace weir::rnic
