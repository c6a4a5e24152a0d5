#include "sockets/service.hpp"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <mutex>
#include <optional>
#include <vector>

#include "sockets/calls/system_calls.hpp"
#include "sockets/connection_objects.hpp"
#include "sockets/far_pairing.hpp"
#include "sockets/runtime.hpp"

namespace weir::sockets {

class Service {
 public:
  static bool start();
  void run();

  SectionMutex mutex;
  std::vector<Connection*> come, ended, reconsidered;  // from other threads, for the next round
  std::unique_ptr<Waiter> waiter;

 private:
  void sleep();
  bool has_work();
  void round();
  std::vector<Connection*> known_;
  FarPairing far_{*table()};
  void watch_paths();
  bool put_back_ = false;
  std::chrono::steady_clock::time_point watched_{};
};

namespace {

constexpr std::chrono::milliseconds between_watches{500};

SectionMutex& start_mutex() {
  static SectionMutex& made = *new SectionMutex;
  return made;
}
constinit std::atomic<Service*> service{nullptr};

void* run_service(void* it) {
  ::pthread_setname_np(::pthread_self(), "weir-sockets");
  static_cast<Service*>(it)->run();
  return nullptr;
}

bool hand_over(std::vector<Connection*> Service::* list, Connection& connection) {
  if (!Service::start()) return false;
  Service* const it = service.load();
  {
    const std::scoped_lock lock(it->mutex);
    (it->*list).push_back(&connection);
  }
  ring(*table(), it->waiter->watcher(0));
  return true;
}

}  // namespace

bool Service::start() {
  if (service.load(std::memory_order_acquire) != nullptr) return true;
  const std::scoped_lock lock(start_mutex());
  if (service.load() != nullptr) return true;
  if (table() == nullptr) return false;
  auto made = std::make_unique<Service>();
  made->waiter = Waiter::make(*table());
  if (!made->waiter) return false;
  // The program's signals belong to its own threads.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t thread{};
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  const bool started = ::pthread_create(&thread, &attributes, run_service, made.get()) == 0;
  ::pthread_attr_destroy(&attributes);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (started) service.store(made.release(), std::memory_order_release);
  return started;
}

// Sleeps until somebody rings, another host sends something, or a step between hosts times out.
void Service::sleep() {
  constexpr std::chrono::nanoseconds nap{10'000'000};
  bool more = waiter->anything(), naps = false;
  {
    const std::scoped_lock lock(mutex);
    more = more || !come.empty() || !reconsidered.empty();
    naps = !ended.empty();
  }
  std::optional<std::chrono::nanoseconds> longest;
  if (naps) longest = nap;
  if (const auto deadline = far_.deadline()) {
    const std::chrono::nanoseconds left = *deadline - std::chrono::steady_clock::now();
    longest =
        std::clamp(left, std::chrono::nanoseconds(0), longest.value_or(std::chrono::nanoseconds::max()));
  }
  if (far_.arrivals().expects_answers())
    longest = std::min<std::chrono::nanoseconds>(between_watches, longest.value_or(between_watches));
  if (more) longest = std::chrono::nanoseconds(0);
  const auto plan = far_.arrivals().plan();
  if (plan.naps)
    longest = std::min<std::chrono::nanoseconds>(FarArrivals::nap, longest.value_or(FarArrivals::nap));
  std::array<pollfd, 3> fds{{{waiter->fd(), POLLIN, 0},
                             {far_.events().fd(), POLLIN, 0},
                             {plan.on_fd ? far_.arrivals().fd() : -1, POLLIN, 0}}};
  timespec time{};
  if (longest) {
    time.tv_sec = static_cast<time_t>(longest->count() / 1'000'000'000);
    time.tv_nsec = static_cast<long>(longest->count() % 1'000'000'000);
  }
  system_calls().ppoll(fds.data(), fds.size(), longest ? &time : nullptr, nullptr);
  if (fds[2].revents != 0) far_.arrivals().take_event();
}

void Service::run() {
  for (;;) {
    waiter->will_sleep();
    sleep();
    waiter->awake();
    waiter->drain();
    far_.look();
    far_.expire(std::chrono::steady_clock::now());
    watch_paths();
    if (!has_work()) continue;
    round();
  }
}

void Service::watch_paths() {
  FarArrivals& arrivals = far_.arrivals();
  const auto now = std::chrono::steady_clock::now();
  if (!arrivals.expects_answers() || now - watched_ < between_watches) return;
  watched_ = now;
  arrivals.expect_no_answers();
  bool any = false;
  for (Connection* it : known_) any |= it->watch_path();
  if (any) arrivals.expect_answers();
}

// False: only links between hosts had something (FarArrivals rings a different bit).
bool Service::has_work() {
  bool rung = false;
  waiter->collect([&](std::uint32_t bit) { rung |= bit == 0; });
  const std::scoped_lock lock(mutex);
  return rung || !come.empty() || !reconsidered.empty() || !ended.empty();
}

void Service::round() {
  std::vector<Connection*> gone, again;
  {
    const std::scoped_lock lock(mutex);
    known_.insert(known_.end(), come.begin(), come.end());
    come.clear();
    gone.swap(ended);
    again.swap(reconsidered);
  }
  for (Connection* it : gone) {
    if (it->users().load() != 0) {  // a thread still uses it; it was rung and will leave
      const std::scoped_lock lock(mutex);
      ended.push_back(it);
      continue;
    }
    std::erase(known_, it);
    far_.forget(*it);
    it->end();
    ConnectionObjects::recycle(*it);
  }
  for (Connection* it : again)
    if (std::ranges::find(known_, it) != known_.end()) it->reconsider();
  if (table()->is_put_back() && !put_back_) {
    put_back_ = true;
    ConnectionObjects::all_stay(Reason::operator_said);
    for (Connection* it : known_) it->list_reason();
  }
  for (Connection* it : known_) {
    if (it->life() == Connection::Life::agreeing) {
      if (it->agree(waiter->watcher(0))) far_.seek(*it);
    } else {
      it->answer_leaving_peer();
    }
  }
}

bool service_agrees(Connection& it) { return hand_over(&Service::come, it); }
void service_reconsiders(Connection& it) { hand_over(&Service::reconsidered, it); }
void service_ends(Connection& it) { hand_over(&Service::ended, it); }

void service_forgets_parent() {
  service.store(nullptr);  // the child has no such thread, and the object belongs to the parent
  new (&start_mutex()) SectionMutex;
}

}  // namespace weir::sockets
