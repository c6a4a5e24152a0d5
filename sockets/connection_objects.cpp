#include "sockets/connection_objects.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace weir::sockets {
namespace {

constexpr std::size_t most_records = 1 << 16;
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

int next_after(int fd) { return Descriptors::next_known(static_cast<unsigned>(fd + 1), ~0u >> 1); }

}  // namespace

SectionMutex& ConnectionObjects::mutex() { return registry().mutex; }

Connection* ConnectionObjects::take(bool accepted) {
  Registry& all = registry();
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
    return nullptr;
  }
  it->renew(*record, accepted);
  return it;
}

// A thread may still be using it; then take() does not reuse it until that thread has left.
void ConnectionObjects::recycle(Connection& it) {
  Registry& all = registry();
  const std::scoped_lock lock(all.mutex);
  it.life_.store(Connection::Life::unused);
  all.free.push_back(&it);
}

void ConnectionObjects::all_stay(Reason why) {
  why_none_changes.store(static_cast<std::uint32_t>(why));
  for (int fd = -1; (fd = next_after(fd)) >= 0;)
    if (const Use use(fd); use) use->stay(fd, why);
}

void ConnectionObjects::each(const std::function<void(int, Connection&)>& visit) {
  for (int fd = -1; (fd = next_after(fd)) >= 0;)
    if (Connection* const it = Descriptors::find(fd); it != nullptr) visit(fd, *it);
}

void ConnectionObjects::each_once(const std::function<void(int, Connection&)>& visit) {
  std::vector<Connection*> seen;
  each([&](int fd, Connection& it) {
    if (it.copies_ > 1 && std::ranges::find(seen, &it) != seen.end()) return;
    if (it.copies_ > 1) seen.push_back(&it);
    visit(fd, it);
  });
}

void ConnectionObjects::before_fork() {
  Registry& all = registry();
  all.mutex.lock();
  for (Connection* it : all.all)
    if (it->life() != Connection::Life::unused && !it->closed_.load()) it->record_->holders.fetch_add(1);
}

void ConnectionObjects::after_fork_in_parent() { registry().mutex.unlock(); }

void ConnectionObjects::after_fork_in_child() {
  Registry& all = registry();
  for (Connection* it : all.all) it->become_childs();
  all.mutex.unlock();
}

}  // namespace weir::sockets
