#include "link/progress_thread.hpp"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <array>
#include <cassert>
#include <cerrno>

#include "link/error.hpp"
#include "link/not_cancelled.hpp"
#include "link/own_thread.hpp"

namespace weir::link {
namespace {

constexpr ProgressThread::Key wake_key = 0;
constexpr ProgressThread::Key timer_key = 1;

bool watch_descriptor(int epoll, int fd, std::uint32_t events, ProgressThread::Key key) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = key;
  return ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

void drain(int fd) {
  std::uint64_t count;
  while (::read(fd, &count, sizeof count) == sizeof count) {
  }
}

timespec absolute(Clock::time_point due) {
  // A zero time would disarm the descriptor; a time in the past fires at once, which is right.
  const auto since_boot = std::max(due.time_since_epoch(), Clock::duration(1));
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since_boot);
  return {.tv_sec = seconds.count(), .tv_nsec = std::chrono::nanoseconds(since_boot - seconds).count()};
}

}  // namespace

Result<std::shared_ptr<ProgressThread>> ProgressThread::start() {
  std::shared_ptr<ProgressThread> made(new ProgressThread);
  if (auto opened = made->open_descriptors(); !opened) return std::unexpected(opened.error());
  try {
    made->thread_ = std::make_unique<std::thread>(own_thread([raw = made.get()] { raw->run(); }));
  } catch (const std::system_error& error) {
    return failure_errno(error.code().value(), "cannot start the link's thread",
                         "raise the limit of processes");
  }
  return made;
}

ProgressThread::~ProgressThread() { stop(); }

Result<void> ProgressThread::open_descriptors() {
  epoll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  wake_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  timer_.reset(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  const bool ready = epoll_ && wake_ && timer_ &&
                     watch_descriptor(epoll_.get(), wake_.get(), EPOLLIN, wake_key) &&
                     watch_descriptor(epoll_.get(), timer_.get(), EPOLLIN, timer_key);
  if (!ready) return failure_errno(errno, "cannot open the link's event descriptors");
  return {};
}

void ProgressThread::stop() {
  if (!thread_) return;
  if (abandoned()) {
    (void)thread_.release();  // it names a thread of the parent
    return;
  }
  assert(!is_current());
  stopping_.store(true, std::memory_order_release);
  wake();
  thread_->join();
  thread_.reset();
  thread_id_.store(std::thread::id{}, std::memory_order_relaxed);  // ids are reused
  drop_what_will_not_run();
}

// Pending work may hold connections, which hold us.
void ProgressThread::drop_what_will_not_run() {
  decltype(timers_) timers;
  decltype(posted_) posted;
  const std::scoped_lock hold(mutex_);
  timers.swap(timers_);
  timer_due_.clear();
  posted.swap(posted_);
}

bool ProgressThread::is_current() const {
  return thread_id_.load(std::memory_order_relaxed) == std::this_thread::get_id();
}

Result<ProgressThread::Key> ProgressThread::add(int fd, std::uint32_t events, Ready ready) {
  if (abandoned()) return failure(std::errc::not_connected, "this process was forked from the link's owner");
  const std::scoped_lock hold(mutex_);
  const Key key = next_key_++;
  sources_.emplace(key, std::make_shared<Source>(Source{fd, events, std::move(ready)}));
  if (!watch_descriptor(epoll_.get(), fd, events, key)) {
    const int error = errno;
    sources_.erase(key);
    return failure_errno(error, "cannot watch descriptor " + std::to_string(fd));
  }
  return key;
}

void ProgressThread::change(Key key, std::uint32_t events) {
  if (abandoned()) return;
  const std::scoped_lock hold(mutex_);
  const auto found = sources_.find(key);
  if (found == sources_.end() || found->second->events == events) return;
  found->second->events = events;
  epoll_event event{};
  event.events = events;
  event.data.u64 = key;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, found->second->fd, &event);
}

void ProgressThread::remove(Key key) {
  if (abandoned()) return;
  std::shared_ptr<Source> last;  // destroyed after the lock: a callback may own objects that lock as they die
  std::unique_lock hold(mutex_);
  const auto found = sources_.find(key);
  if (found != sources_.end()) {
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, found->second->fd, nullptr);
    last = std::move(found->second);
    sources_.erase(found);
  }
  if (!is_current()) source_idle_.wait(hold, [&] { return running_source_ != key; });
  hold.unlock();
}

ProgressThread::TimerId ProgressThread::at(Clock::time_point due, std::function<void()> run) {
  if (abandoned()) return 0;
  const std::scoped_lock hold(mutex_);
  const TimerId timer = next_timer_++;
  timers_.emplace(TimerOrder{due, timer}, std::move(run));
  timer_due_.emplace(timer, due);
  if (due < armed_for_) arm_timer_descriptor();
  return timer;
}

bool ProgressThread::cancel(TimerId timer) {
  if (abandoned()) return false;
  std::function<void()> last;  // destroyed after the lock, as in remove()
  const std::scoped_lock hold(mutex_);
  const auto found = timer_due_.find(timer);
  if (found == timer_due_.end()) return false;
  const auto entry = timers_.find(TimerOrder{found->second, timer});
  last = std::move(entry->second);
  timers_.erase(entry);
  timer_due_.erase(found);
  return true;  // may fire once in vain: cheaper than a system call for every cancelled
                // timer
}

void ProgressThread::post(std::function<void()> run) {
  if (abandoned()) return;
  bool first;
  {
    const std::scoped_lock hold(mutex_);
    first = posted_.empty();
    posted_.push_back(std::move(run));
  }
  if (first) wake();
}

void ProgressThread::wake() {
  const NotCancelled whole;
  const std::uint64_t one = 1;
  // Fails only if the counter is at its maximum; then the thread is awake anyway.
  [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
}

void ProgressThread::arm_timer_descriptor() {
  armed_for_ = timers_.empty() ? Clock::time_point::max() : timers_.begin()->first.first;
  itimerspec when{};
  if (!timers_.empty()) when.it_value = absolute(armed_for_);
  ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
}

void ProgressThread::run() {
  thread_id_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  ::pthread_setname_np(::pthread_self(), "weir-link");
  std::array<epoll_event, 64> events;
  while (!stopping_.load(std::memory_order_acquire)) {
    const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), -1);
    bool timers_due = false;
    for (int i = 0; i < count; ++i) {
      const Key key = events[static_cast<std::size_t>(i)].data.u64;
      if (key == wake_key) {
        drain(wake_.get());
      } else if (key == timer_key) {
        timers_due = true;
      } else {
        run_source(key, events[static_cast<std::size_t>(i)].events);
      }
    }
    if (timers_due) run_due_timers();
    run_posted();
  }
}

void ProgressThread::run_source(Key key, std::uint32_t events) {
  std::shared_ptr<Source> source;
  {
    const std::scoped_lock hold(mutex_);
    const auto found = sources_.find(key);
    if (found == sources_.end()) return;  // removed after the kernel reported it
    source = found->second;
    running_source_ = key;
  }
  source->ready(events);
  source.reset();
  {
    const std::scoped_lock hold(mutex_);
    running_source_ = 0;
  }
  source_idle_.notify_all();
}

// Only timers due at the start run, so a timer that sets itself again holds nobody up.
void ProgressThread::run_due_timers() {
  drain(timer_.get());
  const auto now = Clock::now();
  for (;;) {
    std::function<void()> run;
    {
      const std::scoped_lock hold(mutex_);
      const auto first = timers_.begin();
      if (first == timers_.end() || first->first.first > now) break;
      run = std::move(first->second);
      timer_due_.erase(first->first.second);
      timers_.erase(first);
    }
    run();
  }
  const std::scoped_lock hold(mutex_);
  arm_timer_descriptor();
}

void ProgressThread::run_posted() {
  std::vector<std::function<void()>> batch;
  {
    const std::scoped_lock hold(mutex_);
    batch.swap(posted_);
  }
  for (auto& run : batch) run();
}

void ProgressThread::lock_for_fork() { mutex_.lock(); }
void ProgressThread::unlock_after_fork() { mutex_.unlock(); }

void ProgressThread::abandon() {
  abandoned_.store(true, std::memory_order_release);
  epoll_.reset();
  wake_.reset();
  timer_.reset();
}

}  // namespace weir::link
