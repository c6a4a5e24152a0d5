#include "rnic/memory/window_table.hpp"

namespace weir::rnic {
namespace {

constexpr std::uint32_t index_of(std::uint32_t key) { return (key >> 8) & (max_keys - 1); }
constexpr std::uint32_t window_rights =
    access::remote_write | access::remote_read | access::remote_atomic | access::zero_based;

}  // namespace

std::optional<std::uint32_t> WindowTable::allocate(WindowType type, std::uint32_t pd) {
  const auto key = table_.reserve();
  if (!key) return std::nullopt;
  const std::lock_guard lock(mutex_);
  windows_[index_of(*key)] = {type, pd, 0, 0, false, Qpn()};
  return key;
}

void WindowTable::forget_window(std::uint32_t key) {
  const std::lock_guard lock(mutex_);
  const auto found = windows_.find(index_of(key));
  if (found == windows_.end()) return;
  unbind(found->second);
  windows_.erase(found);
}

std::atomic<std::uint32_t>& WindowTable::invalidated(std::uint32_t key) const {
  return segment_.header().invalidated[index_of(key)];
}

bool WindowTable::bound(const Window& window) const {
  if (window.key == 0) return false;
  const bool taken_back = window.type == WindowType::type2 &&
                          invalidated(window.key).load(std::memory_order_acquire) == window.key;
  return !taken_back;
}

void WindowTable::unbind(Window& window) {
  if (window.key == 0) return;
  table_.invalidate(window.key);
  if (const auto region = regions_.find(window.region); region != regions_.end() && --region->second == 0)
    regions_.erase(region);
  if (const auto holder = holders_.find(window.by.value());
      window.type == WindowType::type2 && --holder->second == 0)
    holders_.erase(holder);
  window.key = 0;
}

// IBA 10.6.7.2.1: checks the region's rights, the domain and the bounds. A window may grant rights that its
// region does not, but to grant writing the region must be writable.
bool WindowTable::allowed(const Bind& bind, const Window& window, std::uint32_t pd) const {
  if (window.pd != pd || (bind.access & ~window_rights) != 0) return false;
  const TptEntry& region = table_.entry(bind.lkey);
  if (region.key.load(std::memory_order_acquire) != bind.lkey || region.pd != pd) return false;
  if (!(region.access & access::local_read) || !(region.access & access::mw_bind)) return false;
  const bool writes = bind.access & (access::remote_write | access::remote_atomic);
  if (writes && !(region.access & access::local_write)) return false;
  return ProtectionTable::in_bounds(region, bind.addr, bind.length);
}

WindowTable::Outcome WindowTable::bind(const Bind& bind, Qpn by, std::uint32_t pd) {
  const std::lock_guard lock(mutex_);
  const auto found = windows_.find(index_of(bind.key));
  if (found == windows_.end()) return Outcome::refused;
  Window& window = found->second;
  if (window.type == WindowType::type2 && (bound(window) || bind.length == 0)) return Outcome::refused;
  const bool to_nothing = bind.length == 0;
  if (!to_nothing && !allowed(bind, window, pd)) return Outcome::refused;
  if (to_nothing && window.pd != pd) return Outcome::refused;
  const Outcome outcome = window.key == 0 ? Outcome::bound : Outcome::moved;
  unbind(window);
  if (to_nothing) return outcome;

  const TptEntry& region = table_.entry(bind.lkey);
  const std::uint64_t offset = bind.addr - region.addr;
  invalidated(bind.key).store(0, std::memory_order_relaxed);  // the key may be in use for the second time
  window.key = bind.key;
  window.travelled |= window.region != 0 && window.region != bind.lkey;
  window.region = bind.lkey;
  window.by = by;
  ++regions_[bind.lkey];
  if (window.type == WindowType::type2) ++holders_[by.value()];
  table_.publish(bind.key,
                 {.addr = bind.access & access::zero_based ? 0 : bind.addr,
                  .base = region.base + offset,
                  .length = bind.length,
                  .access = (bind.access & ~access::zero_based) | (region.access & access::on_demand),
                  .pd = pd,
                  .window = region.window,
                  .window_offset = region.window_offset + offset},
                 window.type == WindowType::type2 ? by : Qpn());
  return outcome;
}

bool WindowTable::invalidate(std::uint32_t key, Qpn by) {
  const std::lock_guard lock(mutex_);
  const auto found = windows_.find(index_of(key));
  if (key == 0 || found == windows_.end()) return false;
  Window& window = found->second;
  if (window.type != WindowType::type2 || window.key != key || window.by != by || !bound(window))
    return false;
  unbind(window);
  return true;
}

void WindowTable::finish_invalidate(std::uint32_t key, Qpn by) {
  const std::lock_guard lock(mutex_);
  const auto found = windows_.find(index_of(key));
  if (found == windows_.end()) return;
  Window& window = found->second;
  // Our initiator wrote that key into our segment; the worst that it can do is this.
  if (window.type == WindowType::type2 && window.key == key && window.by == by) unbind(window);
}

void WindowTable::forget(Qpn qpn) {
  const std::lock_guard lock(mutex_);
  if (!holders_.contains(qpn.value())) return;
  for (auto& [index, window] : windows_)
    if (window.type == WindowType::type2 && window.by == qpn) unbind(window);
}

bool WindowTable::lies_in(std::uint32_t key, std::uint32_t lkey) const {
  const std::lock_guard lock(mutex_);
  const auto found = windows_.find(index_of(key));
  return found != windows_.end() && (found->second.region == lkey || found->second.travelled);
}

bool WindowTable::in_use(std::uint32_t lkey) const {
  const std::lock_guard lock(mutex_);
  return regions_.contains(lkey);
}

}  // namespace weir::rnic
