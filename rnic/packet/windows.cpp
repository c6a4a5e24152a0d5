#include "rnic/packet/windows.hpp"

namespace weir::rnic::packet {

std::shared_ptr<Window> Windows::to(const Gid& destination, std::uint64_t process) {
  const std::lock_guard lock(mutex_);
  std::erase_if(windows_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<Window>& known = windows_[{destination, process}];
  auto window = known.lock();
  if (window == nullptr) known = window = std::make_shared<Window>();
  return window;
}

}  // namespace weir::rnic::packet
