// A runtime directory that somebody has removed: a cleaner of /dev/shm, or the end of a session (RemoveIPC).
// Connections go on without it, but nobody new would find this process. So it looks now and then, and makes
// directory and name anew. All on the progress thread.
#include <sys/epoll.h>
#include <unistd.h>

#include "link/attachment.hpp"
#include "link/explain.hpp"

namespace weir::link {

void Attachment::look_at_directory() {
  if (withdrawn_.load()) return;
  if (directory_.has_name(slot_) || restore())
    progress_->at(Clock::now() + look_interval_, [this] { look_at_directory(); });
}

// False: it cannot be had again, and there is no use in trying.
bool Attachment::restore() {
  const std::string removed = directory_.path() + " was removed while programs used it";
  static std::atomic_flag said;
  if (::geteuid() != user_) {
    explain(removed + "; this one runs as another user now and cannot make it anew: restart it");
    return false;
  }
  auto listener = directory_.restore(slot_);
  if (!listener && listener.error().code == std::errc::file_exists) {
    explain(removed + "; another program has this one's place there now: restart one of them");
    return false;
  }
  if (!listener) {
    if (first_time(said)) explain(removed + ", so no program finds this one: " + listener.error().what);
    return true;
  }
  progress_->remove(listener_key_);
  {
    const std::scoped_lock hold(mutex_);  // for a fork
    listener_ = std::move(*listener);
  }
  auto key = progress_->add(listener_.get(), EPOLLIN, [this](std::uint32_t) { accept_some(); });
  if (key) listener_key_ = *key;
  std::vector<RestoredHandler> handlers;
  {
    const std::scoped_lock hold(mutex_);
    handlers = restored_handlers_;
  }
  for (const auto& handler : handlers) handler();
  if (first_time(said)) explain(removed + ", and has been made anew");
  return true;
}

}  // namespace weir::link
