#include "transport/unix_socket.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace weir::transport {
namespace {

// A folder of the test's own, removed with it.
struct Folder {
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "weir-unix-socket.XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path); }

  std::string socket() const { return path + "/s"; }
  std::string path;
};

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
  const Folder folder;
  const auto listening = listen_at(folder.socket());
  ASSERT_TRUE(listening);
  const auto client = connect_unix(folder.socket());
  ASSERT_TRUE(client);
  const OwnedFd accepted(::accept4(listening->fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
  EXPECT_TRUE(accepted);
}

TEST(UnixSocket, errors_are_those_of_the_system) {
  const Folder folder;
  const std::string too_long = folder.path + "/" + std::string(108, 'x');
  EXPECT_EQ(connect_unix(folder.socket()).error(), ENOENT);
  EXPECT_EQ(connect_unix(too_long).error(), ENAMETOOLONG);
  EXPECT_EQ(listen_at(too_long).error(), ENAMETOOLONG);
  EXPECT_EQ(listen_at(folder.path + "/no/such/folder").error(), ENOENT);
}

TEST(UnixSocket, a_full_queue_is_said_at_once) {
  const Folder folder;
  const auto listening = listen_unix(folder.socket(), 0, 0);
  ASSERT_TRUE(listening);
  const auto first = connect_unix(folder.socket());
  ASSERT_TRUE(first);
  EXPECT_EQ(connect_unix(folder.socket()).error(), EAGAIN);
}

TEST(UnixSocket, the_file_goes_with_the_listener) {
  const Folder folder;
  {
    const auto listening = listen_at(folder.socket());
    ASSERT_TRUE(listening);
    EXPECT_TRUE(exists(folder.socket()));
  }
  EXPECT_FALSE(exists(folder.socket()));
}

TEST(UnixSocket, the_file_of_a_server_that_took_the_path_since_stays) {
  const Folder folder;
  auto first = listen_at(folder.socket());
  ASSERT_TRUE(first);
  std::filesystem::remove(folder.socket());
  const auto second = listen_at(folder.socket());
  ASSERT_TRUE(second);
  first->file.remove();
  EXPECT_TRUE(exists(folder.socket()));
}

TEST(UnixSocket, what_a_killed_server_left_is_replaced) {
  const Folder folder;
  auto killed = listen_at(folder.socket());
  ASSERT_TRUE(killed);
  killed->fd.close();  // its file is still there
  const auto next = listen_at(folder.socket());
  ASSERT_TRUE(next);
  EXPECT_TRUE(connect_unix(folder.socket()));
}

TEST(UnixSocket, a_server_that_answers_keeps_its_path) {
  const Folder folder;
  const auto first = listen_at(folder.socket());
  ASSERT_TRUE(first);
  EXPECT_EQ(listen_at(folder.socket()).error(), EADDRINUSE);
  EXPECT_TRUE(connect_unix(folder.socket()));
}

TEST(UnixSocket, a_file_that_is_no_socket_is_left_alone) {
  const Folder folder;
  std::ofstream(folder.socket()) << "mine";
  EXPECT_EQ(listen_at(folder.socket()).error(), EADDRINUSE);
  EXPECT_EQ(std::filesystem::file_size(folder.socket()), 4U);
}

TEST(UnixSocket, the_mode_is_not_lessened_by_the_umask) {
  const Folder folder;
  const mode_t before = ::umask(0077);
  const auto listening = listen_at(folder.socket(), 0770);
  ::umask(before);
  ASSERT_TRUE(listening);
  EXPECT_EQ(mode_of(folder.socket()), 0770U);
}

}  // namespace
}  // namespace weir::transport
