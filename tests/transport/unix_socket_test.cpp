#include "transport/unix_socket.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/scratch_directory.hpp"

namespace weir::transport {
namespace {

using test::ScratchDirectory;

std::string socket_in(const ScratchDirectory& folder) { return folder.file("s"); }

std::expected<ListeningUnixSocket, int> listen_at(const std::string& path, unsigned mode = 0) {
  return listen_unix(path, mode, 8);
}

bool exists(const std::string& path) {
  return std::filesystem::exists(std::filesystem::symlink_status(path));
}

unsigned mode_of(const std::string& path) {
  struct stat info{};
  return ::lstat(path.c_str(), &info) == 0 ? info.st_mode & 0777U : 0;
}

TEST(UnixSocket, a_client_reaches_the_listener_at_the_path) {
  const ScratchDirectory folder;
  const auto listening = listen_at(socket_in(folder));
  ASSERT_TRUE(listening);
  const auto client = connect_unix(socket_in(folder));
  ASSERT_TRUE(client);
  const OwnedFd accepted(::accept4(listening->fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
  EXPECT_TRUE(accepted);
}

TEST(UnixSocket, errors_are_those_of_the_system) {
  const ScratchDirectory folder;
  const std::string too_long = folder.path() + "/" + std::string(108, 'x');
  EXPECT_EQ(connect_unix(socket_in(folder)).error(), ENOENT);
  EXPECT_EQ(connect_unix(too_long).error(), ENAMETOOLONG);
  EXPECT_EQ(listen_at(too_long).error(), ENAMETOOLONG);
  EXPECT_EQ(listen_at(folder.path() + "/no/such/folder").error(), ENOENT);
}

TEST(UnixSocket, a_full_queue_is_said_at_once) {
  const ScratchDirectory folder;
  const auto listening = listen_unix(socket_in(folder), 0, 0);
  ASSERT_TRUE(listening);
  const auto first = connect_unix(socket_in(folder));
  ASSERT_TRUE(first);
  EXPECT_EQ(connect_unix(socket_in(folder)).error(), EAGAIN);
}

TEST(UnixSocket, the_file_goes_with_the_listener) {
  const ScratchDirectory folder;
  {
    const auto listening = listen_at(socket_in(folder));
    ASSERT_TRUE(listening);
    EXPECT_TRUE(exists(socket_in(folder)));
  }
  EXPECT_FALSE(exists(socket_in(folder)));
}

TEST(UnixSocket, the_file_of_a_server_that_took_the_path_since_stays) {
  const ScratchDirectory folder;
  auto first = listen_at(socket_in(folder));
  ASSERT_TRUE(first);
  std::filesystem::remove(socket_in(folder));
  const auto second = listen_at(socket_in(folder));
  ASSERT_TRUE(second);
  first->file.remove();
  EXPECT_TRUE(exists(socket_in(folder)));
}

TEST(UnixSocket, what_a_killed_server_left_is_replaced) {
  const ScratchDirectory folder;
  auto killed = listen_at(socket_in(folder));
  ASSERT_TRUE(killed);
  killed->fd.close();  // its file is still there
  const auto next = listen_at(socket_in(folder));
  ASSERT_TRUE(next);
  EXPECT_TRUE(connect_unix(socket_in(folder)));
}

TEST(UnixSocket, a_server_that_answers_keeps_its_path) {
  const ScratchDirectory folder;
  const auto first = listen_at(socket_in(folder));
  ASSERT_TRUE(first);
  EXPECT_EQ(listen_at(socket_in(folder)).error(), EADDRINUSE);
  EXPECT_TRUE(connect_unix(socket_in(folder)));
}

TEST(UnixSocket, a_file_that_is_no_socket_is_left_alone) {
  const ScratchDirectory folder;
  std::ofstream(socket_in(folder)) << "mine";
  EXPECT_EQ(listen_at(socket_in(folder)).error(), EADDRINUSE);
  EXPECT_EQ(std::filesystem::file_size(socket_in(folder)), 4U);
}

TEST(UnixSocket, the_mode_is_not_lessened_by_the_umask) {
  const ScratchDirectory folder;
  const mode_t before = ::umask(0077);
  const auto listening = listen_at(socket_in(folder), 0770);
  ::umask(before);
  ASSERT_TRUE(listening);
  EXPECT_EQ(mode_of(socket_in(folder)), 0770U);
}

}  // namespace
}  // namespace weir::transport
