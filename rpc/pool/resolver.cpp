#include "rpc/pool/resolver.hpp"

#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <asio/ip/tcp.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/redirect_error.hpp>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>

#include "rpc/address.hpp"
#include "transport/host_port.hpp"

namespace weir::rpc {

namespace {

using Addresses = std::vector<std::string>;

asio::awaitable<void> wait_until(asio::steady_timer::time_point when) {
  asio::steady_timer timer(co_await asio::this_coro::executor, when);
  co_await timer.async_wait(asio::use_awaitable);
}

class StaticList final : public Resolver {
 public:
  explicit StaticList(Addresses addresses) : addresses_(std::move(addresses)) {}
  asio::awaitable<Result<Addresses>> resolve() override { co_return addresses_; }
  asio::awaitable<void> changed() override { return wait_until(asio::steady_timer::time_point::max()); }

 private:
  const Addresses addresses_;
};

class Dns final : public Resolver {
 public:
  Dns(std::string scheme, std::string host, std::uint16_t port, std::chrono::milliseconds every)
      : scheme_(std::move(scheme)), host_(std::move(host)), port_(port), every_(every) {}

  asio::awaitable<Result<Addresses>> resolve() override {
    asio::ip::tcp::resolver resolver(co_await asio::this_coro::executor);
    std::error_code error;
    const auto found = co_await resolver.async_resolve(host_, std::to_string(port_),
                                                       asio::redirect_error(asio::use_awaitable, error));
    if (error)
      co_return fail(Errc::unreachable, "the name '" + host_ + "' cannot be resolved: " + error.message());
    Addresses addresses;
    for (const auto& entry : found) {
      const std::string at = entry.endpoint().address().to_string();
      addresses.push_back(scheme_ + "://" + transport::host_port_text(at, port_));
    }
    std::ranges::sort(addresses);
    const auto twice = std::ranges::unique(addresses);
    addresses.erase(twice.begin(), twice.end());
    co_return addresses;
  }
  asio::awaitable<void> changed() override { return wait_until(std::chrono::steady_clock::now() + every_); }

 private:
  const std::string scheme_, host_;
  const std::uint16_t port_;
  const std::chrono::milliseconds every_;
};

// What a folder's events say about a file in it. It may also have changed if the kernel lost
// events or the name now means another folder. (Not in the coroutine: GCC 12 cannot keep an
// inotify_event in a coroutine's frame.)
enum class Seen { nothing, change, end };
Seen seen_in(std::span<const char> events, std::string_view file) {
  Seen seen = Seen::nothing;
  for (std::size_t at = 0; at + sizeof(inotify_event) <= events.size();) {
    inotify_event event;
    std::memcpy(&event, events.data() + at, sizeof event);
    if ((event.mask & (IN_IGNORED | IN_MOVE_SELF)) != 0) return Seen::end;
    if ((event.mask & IN_Q_OVERFLOW) != 0 || (event.len > 0 && file == events.data() + at + sizeof event))
      seen = Seen::change;
    at += sizeof event + event.len;
  }
  return seen;
}

// Watches the folder, because editors and deployments replace a file instead of writing it.
class WatchedFile final : public Resolver {
 public:
  explicit WatchedFile(std::string path) : path_(std::move(path)) {}

  asio::awaitable<Result<Addresses>> resolve() override {
    if (!events_) watch(co_await asio::this_coro::executor);
    std::ifstream file(path_);
    if (!file)
      co_return fail(Errc::unreachable,
                     "cannot read the list of servers '" + path_ + "': " + std::strerror(errno));
    Addresses addresses;
    for (std::string line; std::getline(file, line);) {
      line.erase(std::min(line.find('#'), line.size()));
      line.erase(0, line.find_first_not_of(" \t\r"));
      line.erase(line.find_last_not_of(" \t\r") + 1);
      if (line.empty()) continue;
      if (const auto address = parse_address(line); !address)
        co_return fail(Errc::bad_address, path_ + ": " + address.error().what);
      addresses.push_back(line);
    }
    co_return addresses;
  }

  asio::awaitable<void> changed() override {
    if (!events_) co_return co_await wait_until(std::chrono::steady_clock::now() + std::chrono::seconds(1));
    alignas(inotify_event) std::array<char, 4096> buffer;
    const std::string name = std::filesystem::path(path_).filename();
    Seen seen = Seen::nothing;
    while (seen == Seen::nothing) {
      const std::size_t size = co_await events_->async_read_some(asio::buffer(buffer), asio::use_awaitable);
      seen = seen_in(std::span(buffer).first(size), name);
    }
    if (seen == Seen::end) events_.reset();
  }

 private:
  // Without inotify (no descriptors left, or no such folder) the file is read again every second.
  void watch(const asio::any_io_executor& executor) {
    const int fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (fd < 0) return;
    std::string folder = std::filesystem::path(path_).parent_path();
    if (folder.empty()) folder = ".";
    if (inotify_add_watch(fd, folder.c_str(), IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVE_SELF) < 0) {
      ::close(fd);
      return;
    }
    events_.emplace(executor, fd);
  }

  const std::string path_;
  std::optional<asio::posix::stream_descriptor> events_;
};

}  // namespace

std::unique_ptr<Resolver> static_list(Addresses addresses) {
  return std::make_unique<StaticList>(std::move(addresses));
}

std::unique_ptr<Resolver> dns(std::string scheme, std::string host, std::uint16_t port,
                              std::chrono::milliseconds every) {
  return std::make_unique<Dns>(std::move(scheme), std::move(host), port, every);
}

std::unique_ptr<Resolver> watched_file(std::string path) {
  return std::make_unique<WatchedFile>(std::move(path));
}

}  // namespace weir::rpc
