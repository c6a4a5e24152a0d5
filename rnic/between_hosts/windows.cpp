#include "rnic/between_hosts/windows.hpp"

namespace weir::rnic {

std::shared_ptr<SharedWindow> Windows::to(const Gid& destination, std::uint64_t process) {
  const std::lock_guard lock(mutex_);
  std::erase_if(windows_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<SharedWindow>& known = windows_[{destination, process}];
  auto window = known.lock();
  if (window == nullptr) known = window = std::make_shared<SharedWindow>();
  return window;
}

std::vector<std::shared_ptr<SharedWindow>> Windows::all() {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<SharedWindow>> living;
  for (const auto& [destination, known] : windows_)
    if (auto window = known.lock()) living.push_back(std::move(window));
  return living;
}

}  // namespace weir::rnic
