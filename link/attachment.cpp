#include "link/attachment.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/random.h>

#include <cassert>
#include <cerrno>

#include "link/default_directory.hpp"
#include "link/error.hpp"
#include "link/explain.hpp"
#include "link/network_namespace.hpp"

namespace weir::link {
namespace {

Result<Greeting> copy_of(const Greeting& greeting) {
  Greeting copy{greeting.body, {}};
  for (const auto& fd : greeting.fds) {
    copy.fds.emplace_back(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
    if (!copy.fds.back()) return failure_errno(errno, "cannot copy a descriptor of the greeting");
  }
  return copy;
}

}  // namespace

std::string SameHostLink::default_directory(const char* override_dir) {
  return default_runtime_directory(override_dir) + "/" + network_folder();
}

Result<std::unique_ptr<SameHostLink>> SameHostLink::attach(Options options) {
  return Attachment::make(std::move(options));
}

Result<std::unique_ptr<SameHostLink>> Attachment::make(Options options) {
  if (options.greeting.body.size() > max_message_bytes || options.greeting.fds.size() > max_message_fds) {
    return failure(std::errc::invalid_argument, "a greeting is limited to 8192 bytes and 8 fds");
  }
  auto progress = ProgressThread::start();
  if (!progress) return std::unexpected(progress.error());
  auto claim = SlotDirectory::claim(options.directory, ::getpid());
  if (!claim) return std::unexpected(claim.error());
  static std::atomic_flag warned;
  if (!claim->warning.empty() && first_time(warned)) explain(claim->warning);
  std::unique_ptr<Attachment> made(
      new Attachment(std::move(*claim), std::move(*progress), std::move(options)));
  if (auto begun = made->begin(); !begun) return std::unexpected(begun.error());
  return made;
}

Attachment::Attachment(SlotDirectory::Claim claim, std::shared_ptr<ProgressThread> progress, Options options)
    : directory_(std::move(claim.directory)),
      slot_(claim.slot),
      user_(::geteuid()),
      listener_(std::move(claim.listener)),
      number_(std::move(claim.number)),
      progress_(std::move(progress)),
      greeting_(std::move(options.greeting)),
      look_interval_(options.look_interval) {
  for (auto& [kind, handler] : options.messages) on_message(kind, std::move(handler));
  for (auto& handler : options.gone) on_gone(std::move(handler));
  fork_registration_.emplace(static_cast<ForkAware&>(*this));
}

Result<void> Attachment::begin() {
  if (::getrandom(&incarnation_, sizeof incarnation_, 0) != sizeof incarnation_) {
    return failure_errno(errno, "cannot draw a random incarnation number");
  }
  auto greeting = copy_of(greeting_);
  if (!greeting) return std::unexpected(greeting.error());
  self_ = std::make_shared<Loopback>(
      Loopback::Identity{slot_, incarnation_, std::move(*greeting)}, progress_,
      [this](const NeighbourPtr& from, Message&& message) { return deliver(from, std::move(message)); });
  auto key = progress_->add(listener_.get(), EPOLLIN, [this](std::uint32_t) { accept_some(); });
  if (!key) return std::unexpected(key.error());
  // accept_some() may already be running. It reads the key only after it pauses, on the
  // thread that runs this.
  progress_->post([this, listening = *key] { listener_key_ = listening; });
  progress_->at(Clock::now() + look_interval_, [this] { look_at_directory(); });
  return {};
}

Attachment::~Attachment() {
  fork_registration_.reset();
  if (progress_->abandoned()) {
    // A forked child. Threads that do not exist here may have been using the mutexes and condition variables
    // inside, so nothing may destroy them.
    progress_->stop();
    new auto(progress_);
    new auto(connections_);
    new auto(self_);
    return;
  }
  progress_->stop();
  std::set<Connection::Ptr> open;
  {
    const std::scoped_lock hold(mutex_);
    open = connections_;
    for (auto& [slot, dial] : dials_) {
      for (auto& waiter : dial.waiters) {
        // In place: GCC 12 sees an overflow (its bug 105651) where the text is moved into the optional.
        waiter->result.emplace(std::unexpect, std::errc::not_connected,
                               "this process has detached from the link");
      }
    }
  }
  dialed_.notify_all();
  for (const auto& connection : open) connection->close_quietly();
  if (self_) self_->close();
  listener_.reset();
  withdraw();
}

void Attachment::withdraw() {
  if (!withdrawn_.exchange(true)) directory_.release(slot_);
}

NeighbourPtr Attachment::connected(Slot slot) const {
  if (slot == slot_) return self_;
  return established(slot);
}

Connection::Ptr Attachment::established(Slot slot) const {
  const std::scoped_lock hold(mutex_);
  const auto found = table_.find(slot);
  return found != table_.end() && found->second->alive() ? found->second : nullptr;
}

void Attachment::on_message(std::uint16_t kind, MessageHandler handler) {
  assert(kind > 0 && kind < kind::end);
  const std::scoped_lock hold(mutex_);
  assert(!handlers_[kind]);
  handlers_[kind] = std::move(handler);
}

void Attachment::on_gone(GoneHandler handler) {
  const std::scoped_lock hold(mutex_);
  gone_handlers_.push_back(std::make_shared<const GoneHandler>(std::move(handler)));
}

void Attachment::on_restored(RestoredHandler handler) {
  const std::scoped_lock hold(mutex_);
  restored_handlers_.push_back(std::move(handler));
}

Result<void> Attachment::watch(int fd, FdHandler on_readable) {
  const std::scoped_lock hold(mutex_);
  assert(!watched_.contains(fd));
  auto key = progress_->add(fd, EPOLLIN, [ready = std::move(on_readable)](std::uint32_t) { ready(); });
  if (!key) return std::unexpected(key.error());
  watched_.emplace(fd, *key);
  return {};
}

void Attachment::unwatch(int fd) {
  ProgressThread::Key key;
  {
    const std::scoped_lock hold(mutex_);
    const auto found = watched_.find(fd);
    if (found == watched_.end()) return;
    key = found->second;
    watched_.erase(found);
  }
  progress_->remove(key);
}

void Attachment::heed(int fd, bool readable) {
  ProgressThread::Key key;
  {
    const std::scoped_lock hold(mutex_);
    const auto found = watched_.find(fd);
    if (found == watched_.end()) return;
    key = found->second;
  }
  progress_->change(key, readable ? EPOLLIN : 0);
}

bool Attachment::deliver(const NeighbourPtr& from, Message&& message) {
  const MessageHandler* handler = nullptr;
  {
    const std::scoped_lock hold(mutex_);
    if (message.kind < handlers_.size() && handlers_[message.kind]) handler = &handlers_[message.kind];
  }
  if (handler == nullptr) return false;
  (*handler)(from, std::move(message));
  return true;
}

void Attachment::hello_arrived(const Connection::Ptr& connection, Connection::Identity identity) {
  if (connection->dialed() == 0) return greet_caller(connection, std::move(identity));
  const Slot slot = connection->dialed();
  if (identity.slot != slot) return connection->end();
  establish(connection, std::move(identity));
  finish_dial(slot, NeighbourPtr(connection));
}

void Attachment::message_arrived(const Connection::Ptr& connection, Message&& message) {
  Message without_content{message.kind, message.request, {}, {}};
  if (!deliver(connection, std::move(message))) connection->refuse_request(without_content);
}

void Attachment::establish(const Connection::Ptr& connection, Connection::Identity identity) {
  const Slot slot = identity.slot;
  connection->establish(std::move(identity));
  const std::scoped_lock hold(mutex_);
  table_[slot] = connection;
}

void Attachment::remember(const Connection::Ptr& connection) {
  const std::scoped_lock hold(mutex_);
  connections_.insert(connection);
}

void Attachment::forget(const Connection::Ptr& connection) {
  const std::scoped_lock hold(mutex_);
  connections_.erase(connection);
}

void Attachment::ended(const Connection::Ptr& connection) {
  forget(connection);
  if (const auto found = half_open_.find(connection); found != half_open_.end()) {
    progress_->cancel(found->second);
    half_open_.erase(found);
    return;
  }
  if (const auto found = dials_.find(connection->dialed());
      found != dials_.end() && found->second.connection == connection) {
    return retry_dial(connection->dialed());
  }
  if (connection->slot() == 0) return;  // never established
  std::vector<std::shared_ptr<const GoneHandler>> handlers;
  {
    const std::scoped_lock hold(mutex_);
    const auto found = table_.find(connection->slot());
    if (found != table_.end() && found->second == connection) table_.erase(found);
    handlers = gone_handlers_;
  }
  for (const auto& handler : handlers) (*handler)(connection);
}

void Attachment::lock_for_fork() {
  mutex_.lock();
  progress_->lock_for_fork();
}

void Attachment::unlock_after_fork() {
  progress_->unlock_after_fork();
  mutex_.unlock();
}

void Attachment::abandon_in_child() {
  progress_->abandon();
  for (const auto& connection : connections_) connection->abandon_after_fork();
  if (self_) self_->abandon_after_fork();
  listener_.reset();
  number_.reset();
  directory_.close();
  greeting_.fds.clear();
}

}  // namespace weir::link
