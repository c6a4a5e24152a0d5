// What the link's tests share: a directory for each test, attachments in it, and bytes as text.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <future>
#include <string>

#include "link/same_host.hpp"
#include "tests/scratch_directory.hpp"

namespace weir::link {

inline std::span<const std::byte> bytes(std::string_view text) { return std::as_bytes(std::span(text)); }
inline std::string text(std::span<const std::byte> body) {
  return {reinterpret_cast<const char*>(body.data()), body.size()};
}
inline bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

inline void signal_event(int fd) {
  const std::uint64_t one = 1;
  ASSERT_EQ(::write(fd, &one, sizeof one), static_cast<ssize_t>(sizeof one));
}
inline std::uint64_t event_count(int fd) {
  std::uint64_t count = 0;
  return ::read(fd, &count, sizeof count) == sizeof count ? count : 0;
}

// A greeting with a text and a copy of one descriptor.
inline Greeting greeting(std::string_view body, int fd) {
  Greeting made;
  const auto raw = bytes(body);
  made.body.assign(raw.begin(), raw.end());
  made.fds.emplace_back(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  return made;
}

// Replies with what came.
inline std::pair<std::uint16_t, MessageHandler> echo(std::uint16_t kind) {
  return {kind, [](const NeighbourPtr& from, Message&& message) {
            std::vector<int> fds;
            for (const auto& fd : message.fds) fds.push_back(fd.get());
            (void)from->reply(message, message.body, fds);
          }};
}

inline void on_progress(SameHostLink& link, const std::function<void()>& run) {
  std::promise<void> done;
  link.post([&] {
    run();
    done.set_value();
  });
  done.get_future().wait();
}

class LinkTest : public testing::Test {
 protected:
  const std::string& directory() const { return directory_; }

  std::unique_ptr<SameHostLink> attach(SameHostLink::Options options = {}) {
    options.directory = directory_;
    auto made = SameHostLink::attach(std::move(options));
    if (!made) {
      ADD_FAILURE() << made.error().what;
      throw std::runtime_error("cannot attach");
    }
    return std::move(*made);
  }

  static NeighbourPtr connect(SameHostLink& from, Slot to) {
    auto made = from.connect(to, std::chrono::seconds(10));
    if (!made) {
      ADD_FAILURE() << made.error().what;
      throw std::runtime_error("cannot connect");
    }
    return *made;
  }

 private:
  const test::ScratchDirectory base_{"/dev/shm"};
  const std::string directory_ = base_.file("link");
};

}  // namespace weir::link
