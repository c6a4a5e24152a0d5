#include "sockets/connections.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <vector>

#include "sockets/event_set.hpp"
#include "sockets/report.hpp"
#include "sockets/runtime.hpp"
#include "sockets/service.hpp"
#include "sockets/settings.hpp"
#include "sockets/system_calls.hpp"

namespace weir::sockets {
namespace {

constexpr std::size_t most_descriptors = 1 << 20;
constexpr std::size_t most_records = 1 << 16;
// A pointer to a Connection, or to an EventSet with the lowest bit set. Pages are allocated on first use.
constinit std::array<std::atomic<std::uintptr_t>, most_descriptors> places{};
constinit std::atomic<unsigned> used{0};
constinit std::atomic<std::uint32_t> why_none_changes{0};  // a Reason

struct Registry {
  SectionMutex mutex;
  std::vector<Connection*> all, free;
  Record* records = nullptr;  // shared with forked children
  std::size_t next_record = 0;
};
Registry& registry() {
  static Registry& made = *new Registry;
  return made;
}

std::atomic<std::uintptr_t>* place_of(int fd) {
  return fd >= 0 && static_cast<std::size_t>(fd) < places.size() ? &places[static_cast<std::size_t>(fd)]
                                                                 : nullptr;
}

void set_place(int fd, std::uintptr_t value) {
  auto known = used.load();
  while (known <= static_cast<unsigned>(fd) &&
         !used.compare_exchange_weak(known, static_cast<unsigned>(fd) + 1)) {
  }
  place_of(fd)->store(value, std::memory_order_release);
}

Record nobodys{};

Record* take_record(Registry& all) {
  if (all.records == nullptr) {
    void* at = ::mmap(nullptr, most_records * sizeof(Record), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return nullptr;
    all.records = static_cast<Record*>(at);
  }
  for (std::size_t i = 0; i < most_records; ++i) {
    Record& one = all.records[all.next_record++ % most_records];
    std::uint32_t none = 0;
    if (!one.taken.compare_exchange_strong(none, 1)) continue;
    one.send_gate.store(0);
    one.receive_gate.store(0);
    for (auto* word :
         {&one.end.sent, &one.end.received, &one.end.sent_tcp, &one.end.received_tcp, &one.end.changes_seen})
      word->store(0);
    one.holders.store(1);
    one.stays.store(why_none_changes.load());
    return &one;
  }
  return nullptr;
}

}  // namespace

Connection* Connections::find(int fd) {
  const auto* place = place_of(fd);
  const std::uintptr_t value = place != nullptr ? place->load(std::memory_order_acquire) : 0;
  return (value & 1) == 0 ? reinterpret_cast<Connection*>(value) : nullptr;
}

EventSet* Connections::find_set(int fd) {
  const auto* place = place_of(fd);
  const std::uintptr_t value = place != nullptr ? place->load(std::memory_order_acquire) : 0;
  return (value & 1) != 0 ? reinterpret_cast<EventSet*>(value & ~std::uintptr_t{1}) : nullptr;
}

bool Connections::is_known(int fd) {
  const auto* place = place_of(fd);
  return place != nullptr && place->load(std::memory_order_relaxed) != 0;
}

int Connections::next_known(unsigned first, unsigned last) {
  const auto end = used.load();
  for (unsigned fd = first; fd < end && fd <= last; ++fd)
    if (places[fd].load(std::memory_order_relaxed) != 0) return static_cast<int>(fd);
  return -1;
}

void Connections::born(int fd, bool accepted) {
  if (place_of(fd) == nullptr || settings().off) return;
  forget(fd);
  watch_forks();
  Registry& all = registry();
  const std::scoped_lock lock(all.mutex);
  Connection* it = nullptr;
  for (auto free = all.free.begin(); free != all.free.end() && it == nullptr; ++free) {
    if ((*free)->users_.load() != 0) continue;
    it = *free;
    if (it->record_->holders.load() == 0) it->record_->taken.store(0);
    all.free.erase(free);
    break;
  }
  if (it == nullptr) {
    it = new Connection;
    it->record_ = &nobodys;
    all.all.push_back(it);
  }
  Record* const record = take_record(all);
  if (record == nullptr) {
    all.free.push_back(it);
    return;
  }
  it->renew(*record, accepted);
  set_place(fd, reinterpret_cast<std::uintptr_t>(it));
}

void Connections::copied(int fd, int copy) {
  if (copy < 0 || copy == fd || place_of(copy) == nullptr) return;
  forget(copy);
  Registry& all = registry();
  const std::scoped_lock lock(all.mutex);
  Connection* const it = find(fd);
  if (it == nullptr) return;
  ++it->copies_;
  set_place(copy, reinterpret_cast<std::uintptr_t>(it));
}

void Connections::all_stay(Reason why) {
  why_none_changes.store(static_cast<std::uint32_t>(why));
  for (int fd = -1; (fd = next_known(static_cast<unsigned>(fd + 1), ~0u >> 1)) >= 0;)
    if (const Use use(fd); use) use->stay(fd, why);
}

void Connections::closing(int fd) { end_of(fd, true); }

// `open`: the descriptor still belongs to the connection.
void Connections::end_of(int fd, bool open) {
  auto* const place = place_of(fd);
  if (place == nullptr || place->load(std::memory_order_relaxed) == 0) return;
  if (EventSet* set = find_set(fd)) {
    place->store(0);
    set->close();
    return;
  }
  Registry& all = registry();
  Connection* it = nullptr;
  bool last = false;
  {
    const std::scoped_lock lock(all.mutex);
    it = find(fd);
    if (it == nullptr) return;
    place->store(0);
    last = --it->copies_ == 0;
  }
  EventSet::forget_everywhere(*it, fd);
  it->close(fd, last, open);
  if (!last) return;
  if (settings().report) count_ended(*it);
  if (it->foreign_) (void)it->link_.release();  // the link and the place in the table are the parent's
  if (it->foreign_ || it->life() == Connection::Life::observed) {
    recycle(*it);
  } else {
    service_ends(*it);
  }
}

void Connections::forget(int fd) {
  auto* const place = place_of(fd);
  if (place == nullptr || place->load(std::memory_order_relaxed) == 0) return;
  // Closed by a call that we did not see. What was agreed with its peer is over.
  end_of(fd, false);
}

// A thread may still be using it; then born() does not reuse it until that thread has left.
void Connections::recycle(Connection& it) {
  Registry& all = registry();
  const std::scoped_lock lock(all.mutex);
  it.life_.store(Connection::Life::unused);
  all.free.push_back(&it);
}

void Connections::leave_holders(bool closed_by_exec_alone) {
  each([&](int fd, Connection& it) {
    if (closed_by_exec_alone && (system_calls().fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0) return;
    it.record_->holders.fetch_sub(1);
  });
}

void Connections::join_holders() {
  each([](int fd, Connection& it) {
    if ((system_calls().fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0) it.record_->holders.fetch_add(1);
  });
}

void Connections::each(const std::function<void(int, Connection&)>& visit) {
  for (int fd = -1; (fd = next_known(static_cast<unsigned>(fd + 1), ~0u >> 1)) >= 0;)
    if (Connection* const it = find(fd); it != nullptr) visit(fd, *it);
}

void Connections::each_once(const std::function<void(int, Connection&)>& visit) {
  std::vector<Connection*> seen;
  each([&](int fd, Connection& it) {
    if (it.copies_ > 1 && std::ranges::find(seen, &it) != seen.end()) return;
    if (it.copies_ > 1) seen.push_back(&it);
    visit(fd, it);
  });
}

void Connections::set_born(int fd) {
  if (place_of(fd) == nullptr || settings().off) return;
  forget(fd);
  set_place(fd, reinterpret_cast<std::uintptr_t>(new EventSet(fd)) | 1);
}

void Connections::leave_before_fork() {
  if (settings().peers.empty()) return;
  each_once([](int fd, Connection& it) {
    if (it.engaged() && it.far_ && !it.foreign_ && it.stays() == Reason::none) it.leave_for_child(fd);
  });
}

void Connections::part_all(bool by_exec) {
  if (settings().peers.empty()) return;
  each_once([&](int fd, Connection& it) {
    if (by_exec && (system_calls().fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0) return;
    if (it.record_->holders.load() == 1) it.part(fd, true);
  });
}

void Connections::before_fork() {
  Registry& all = registry();
  all.mutex.lock();
  for (Connection* it : all.all)
    if (it->life() != Connection::Life::unused && !it->closed_.load()) it->record_->holders.fetch_add(1);
}

void Connections::after_fork_in_parent() { registry().mutex.unlock(); }

void Connections::after_fork_in_child() {
  Registry& all = registry();
  for (Connection* it : all.all) it->become_childs();
  all.mutex.unlock();
  for (int fd = -1; (fd = next_known(static_cast<unsigned>(fd + 1), ~0u >> 1)) >= 0;)
    if (EventSet* set = find_set(fd)) set->become_childs();
}

}  // namespace weir::sockets
