#include "verbs/nic/completion_channels.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "link/not_cancelled.hpp"

namespace weir::verbs {
namespace {

bool add(const link::UniqueFd& set, int descriptor) {
  epoll_event readable{.events = EPOLLIN, .data = {}};
  return ::epoll_ctl(set.get(), EPOLL_CTL_ADD, descriptor, &readable) == 0;
}

}  // namespace

bool is_blocking(int descriptor) { return (::fcntl(descriptor, F_GETFL) & O_NONBLOCK) == 0; }

link::Result<CompletionChannels::Opened> CompletionChannels::open() {
  Channel made{.events = link::UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE)),
               .descriptor = link::UniqueFd(::epoll_create1(EPOLL_CLOEXEC))};
  if (!made.events || !made.descriptor || !add(made.descriptor, made.events.get()))
    return link::failure_errno(errno, "cannot open a completion channel's descriptors",
                               "raise the limit of open files");
  const std::lock_guard lock(mutex_);
  const Opened opened{next_++, made.descriptor.get(), made.events.get()};
  channels_.emplace(opened.number, std::move(made));
  return opened;
}

void CompletionChannels::close(std::uint32_t number) {
  const std::lock_guard lock(mutex_);
  channels_.erase(number);
}

thread_local CompletionChannels::Caught* CompletionChannels::caught_ = nullptr;

void CompletionChannels::raise(std::uint32_t number) {
  if (caught_ != nullptr && caught_->number == number)
    ++caught_->events;
  else
    write(number, 1);
}

void CompletionChannels::write(std::uint32_t number, std::uint64_t events) {
  const link::NotCancelled whole;
  const std::lock_guard lock(mutex_);
  const auto found = channels_.find(number);
  if (found == channels_.end()) return;
  // Fails only if 2^64 - 2 events are pending.
  [[maybe_unused]] const ssize_t written = ::write(found->second.events.get(), &events, sizeof events);
}

void CompletionChannels::pass_on(std::uint32_t number, const std::function<void(int events)>& send) {
  const std::lock_guard lock(mutex_);
  const auto found = channels_.find(number);
  if (found != channels_.end()) send(found->second.events.get());
}

bool CompletionChannels::hold(int port) {
  const std::lock_guard lock(mutex_);
  if (channels_.size() != 1) return false;
  const auto& [number, channel] = *channels_.begin();
  if (is_blocking(channel.descriptor.get()) || !add(channel.descriptor, port)) return false;
  holder_.store(number, std::memory_order_relaxed);
  return true;
}

void CompletionChannels::release(int port) {
  const std::lock_guard lock(mutex_);
  const auto found = channels_.find(holder_.exchange(0, std::memory_order_relaxed));
  if (found != channels_.end()) ::epoll_ctl(found->second.descriptor.get(), EPOLL_CTL_DEL, port, nullptr);
}

}  // namespace weir::verbs
