// The directory in which processes find each other: paths, who is in it, and what the last process leaves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <future>

#include "link/default_directory.hpp"
#include "link/network_namespace.hpp"
#include "link/same_host.hpp"
#include "tests/descriptors_below.hpp"
#include "tests/link/fixture.hpp"

namespace weir::link {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class LinkDirectory : public LinkTest {};

TEST_F(LinkDirectory, a_directory_that_cannot_be_used_is_an_error_that_names_it) {
  const std::string parent = directory() + "-parent";
  ASSERT_EQ(::mkdir(parent.c_str(), 0700), 0);
  const std::string open_to_all = parent + "/open";
  ASSERT_EQ(::mkdir(open_to_all.c_str(), 0700), 0);
  ASSERT_EQ(::chmod(open_to_all.c_str(), 0777), 0);
  const std::string file = parent + "/file";
  UniqueFd(::open(file.c_str(), O_CREAT | O_WRONLY, 0600));
  const struct {
    std::string path;
    std::errc code;
  } cases[] = {
      {parent + "/missing/below", std::errc::no_such_file_or_directory},
      {open_to_all, std::errc::permission_denied},
      {file, std::errc::not_a_directory},
  };
  for (const auto& one : cases) {
    const auto attached = SameHostLink::attach({.directory = one.path});
    ASSERT_FALSE(attached) << one.path;
    EXPECT_EQ(attached.error().code, one.code) << attached.error().what;
    EXPECT_THAT(attached.error().what, HasSubstr(one.path));
    EXPECT_THAT(attached.error().what, HasSubstr("WEIR_RUNTIME_DIR"));
  }
  std::filesystem::remove_all(parent);
}

TEST_F(LinkDirectory, a_directory_path_longer_than_a_socket_address_works) {
  const std::string parent = directory() + "-" + std::string(120, 'x');
  ASSERT_EQ(::mkdir(parent.c_str(), 0700), 0);
  const std::string deep = parent + "/" + std::string(100, 'y');
  {
    auto a = SameHostLink::attach({.directory = deep});
    ASSERT_TRUE(a) << a.error().what;
    auto b = SameHostLink::attach({.directory = deep});
    ASSERT_TRUE(b) << b.error().what;
    EXPECT_TRUE((*a)->connect((*b)->slot(), 5s));
  }
  EXPECT_FALSE(exists(deep));
  ::rmdir(parent.c_str());
}

TEST_F(LinkDirectory, what_other_layers_left_in_the_directory_goes_with_the_last_process) {
  auto a = attach();
  for (const char* folder : {"/cm", "/cm/tcp-7471"})
    ASSERT_EQ(::mkdir((directory() + folder).c_str(), 0700), 0);
  for (const char* file : {"/file", "/cm/tcp-7471/file"})
    UniqueFd(::open((directory() + file).c_str(), O_CREAT | O_WRONLY, 0600));
  a.reset();
  EXPECT_FALSE(exists(directory()));
}

// As the end of a login session does it (RemoveIPC of logind.conf).
TEST_F(LinkDirectory, that_was_removed_is_made_anew_and_its_processes_are_found) {
  const auto old = attach({.look_interval = 1ms});
  std::promise<void> restored;
  old->on_restored([&] { restored.set_value(); });
  std::filesystem::remove_all(directory());
  ASSERT_EQ(restored.get_future().wait_for(20s), std::future_status::ready);
  const auto fresh = attach();
  EXPECT_EQ(connect(*fresh, old->slot())->slot(), old->slot());
  EXPECT_EQ(old->occupied().size(), 2u);
}

TEST_F(LinkDirectory, that_has_lost_a_processs_name_gets_it_again) {
  const auto old = attach({.look_interval = 1ms});
  const auto fresh = attach();
  std::promise<void> restored;
  old->on_restored([&] { restored.set_value(); });
  char name[16];
  std::snprintf(name, sizeof name, "/slot-%04u", old->slot());
  ASSERT_EQ(::unlink((directory() + name).c_str()), 0);
  ASSERT_EQ(restored.get_future().wait_for(20s), std::future_status::ready);
  EXPECT_EQ(connect(*fresh, old->slot())->slot(), old->slot());
}

// The list of names is kept while the directory does not change; its times are set here, so that they are
// old.
TEST_F(LinkDirectory, who_comes_and_goes_is_seen_although_the_list_is_kept) {
  auto a = attach();
  const auto occupied_at = [&](time_t modified) {
    const timespec times[2] = {{modified, 0}, {modified, 0}};
    EXPECT_EQ(::utimensat(AT_FDCWD, directory().c_str(), times, 0), 0);
    (void)a->occupied();  // keeps it
    return a->occupied();
  };
  EXPECT_THAT(occupied_at(1000), testing::UnorderedElementsAre(a->slot()));
  auto b = attach();
  EXPECT_THAT(a->occupied(), testing::UnorderedElementsAre(a->slot(), b->slot()));
  EXPECT_THAT(occupied_at(2000), testing::UnorderedElementsAre(a->slot(), b->slot()));
  b.reset();
  EXPECT_THAT(a->occupied(), testing::UnorderedElementsAre(a->slot()));
}

// Old times again: a list that was read then is kept until the directory changes.
TEST_F(LinkDirectory, out_of_descriptors_the_others_stay_known) {
  auto a = attach(), b = attach();
  const auto change_at = [&](time_t modified) {
    const timespec times[2] = {{modified, 0}, {modified, 0}};
    EXPECT_EQ(::utimensat(AT_FDCWD, directory().c_str(), times, 0), 0);
  };
  change_at(1000);
  const auto both = a->occupied();
  EXPECT_THAT(both, testing::UnorderedElementsAre(a->slot(), b->slot()));
  change_at(2000);
  {
    const test::DescriptorsBelow none(3);
    EXPECT_EQ(a->occupied(), both);
  }
  EXPECT_EQ(a->occupied(), both);
}

// The one is for the lock. The lock's file is the mark: with it gone, two processes may each think that they
// have the directory to themselves.
TEST_F(LinkDirectory, who_leaves_with_one_descriptor_left_takes_nothing_from_the_others) {
  UniqueFd lowest(::fcntl(0, F_DUPFD_CLOEXEC, 0));
  auto a = attach(), b = attach();
  {
    const test::DescriptorsBelow one(lowest.get() + 1);
    lowest.reset();
    b.reset();
  }
  EXPECT_TRUE(exists(directory() + "/lock"));
  a.reset();
  EXPECT_FALSE(exists(directory()));
}

TEST_F(LinkDirectory, a_lasting_file_stays_when_the_last_process_leaves) {
  auto a = attach();
  const std::string lasting = directory() + "/" + lasting_prefix + "file", other = directory() + "/file";
  for (const std::string& path : {lasting, other}) UniqueFd(::open(path.c_str(), O_CREAT | O_WRONLY, 0600));
  a.reset();
  EXPECT_TRUE(exists(lasting));
  EXPECT_FALSE(exists(other));
  ::unlink(lasting.c_str());
  ::rmdir(directory().c_str());
}

TEST_F(LinkDirectory, a_folder_of_a_process_that_is_not_attached_stays_when_the_last_one_leaves) {
  auto a = attach();
  const std::string folder = directory() + "/view-1", file = folder + "/file";
  ASSERT_EQ(::mkdir(folder.c_str(), 0700), 0);
  UniqueFd(::open(file.c_str(), O_CREAT | O_WRONLY, 0600));
  a.reset();
  EXPECT_TRUE(exists(file));
  std::filesystem::remove_all(directory());
}

TEST_F(LinkDirectory, attaching_and_detaching_at_once_from_many_threads_never_fails) {
  std::vector<std::future<std::string>> workers;
  for (int worker = 0; worker < 4; ++worker) {
    workers.push_back(std::async(std::launch::async, [&]() -> std::string {
      for (int i = 0; i < 50; ++i) {
        auto link = SameHostLink::attach({.directory = directory()});
        if (!link) return link.error().what;
      }
      return {};
    }));
  }
  for (auto& worker : workers) EXPECT_EQ(worker.get(), "");
  EXPECT_FALSE(exists(directory()));
}

TEST_F(LinkDirectory, a_default_directory_that_another_user_took_is_passed_over) {
  std::filesystem::create_directory(directory());  // ours, so the user with the next number does not own it
  const std::string own = directory() + "/run";
  std::filesystem::create_directory(own);
  EXPECT_EQ(usable_directory(directory(), own, ::geteuid()), directory());
  EXPECT_EQ(usable_directory(directory() + "/none", own, ::geteuid()), directory() + "/none");
  EXPECT_EQ(usable_directory(directory(), own, ::geteuid() + 1), directory()) << "`own` is another's, too";
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(directory().c_str(), 1, 1), 0);
    EXPECT_EQ(usable_directory(directory(), own, 0), own + "/weir");
  }
  std::filesystem::remove_all(directory());
}

TEST_F(LinkDirectory, the_default_directory_is_the_users_own_unless_told) {
  const std::string network = "/" + network_folder();
  EXPECT_EQ(SameHostLink::default_directory(""), SameHostLink::default_directory(nullptr));
  EXPECT_EQ(SameHostLink::default_directory("/run/mine"), "/run/mine" + network);
}

TEST_F(LinkDirectory, of_a_network_namespace_goes_with_the_runtime_directory_above_it) {
  const std::string mine = SameHostLink::default_directory(directory().c_str());
  {
    auto attached = SameHostLink::attach({.directory = mine});
    ASSERT_TRUE(attached) << attached.error().what;
    struct stat above{};
    ASSERT_EQ(::stat(directory().c_str(), &above), 0);
    EXPECT_EQ(above.st_mode & 0777, 0700u);
    EXPECT_TRUE(exists(mine));
  }
  EXPECT_FALSE(exists(directory()));
}

TEST_F(LinkDirectory, below_a_runtime_directory_that_others_may_write_in_is_refused) {
  ASSERT_EQ(::mkdir(directory().c_str(), 0700), 0);
  ASSERT_EQ(::chmod(directory().c_str(), 0777), 0);
  const auto attached =
      SameHostLink::attach({.directory = SameHostLink::default_directory(directory().c_str())});
  ASSERT_FALSE(attached);
  EXPECT_EQ(attached.error().code, std::errc::permission_denied);
}

// Runs in a child that is in another network namespace; whether it did what it was to do.
enum class Elsewhere { yes, no, not_permitted };
template <class Do>
Elsewhere in_another_network_namespace(Do does) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWNET) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
      ::_exit(static_cast<int>(Elsewhere::not_permitted));
    ::_exit(static_cast<int>(does() ? Elsewhere::yes : Elsewhere::no));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? static_cast<Elsewhere>(WEXITSTATUS(status)) : Elsewhere::no;
}

TEST_F(LinkDirectory, shared_by_two_network_namespaces_shows_neither_the_other) {
  const std::string shared = directory();
  auto ours = SameHostLink::attach({.directory = SameHostLink::default_directory(shared.c_str())});
  ASSERT_TRUE(ours) << ours.error().what;
  const link::Slot slot = (*ours)->slot();
  const auto alone = in_another_network_namespace([&] {
    auto theirs = SameHostLink::attach({.directory = SameHostLink::default_directory(shared.c_str())});
    return theirs && (*theirs)->occupied().size() == 1 &&
           ((*theirs)->slot() == slot || !(*theirs)->connect(slot, 5s));
  });
  if (alone == Elsewhere::not_permitted)
    GTEST_SKIP() << "the kernel lets this user make no network namespace (CLONE_NEWNET)";
  EXPECT_EQ(alone, Elsewhere::yes);
  EXPECT_EQ((*ours)->occupied().size(), 1u);
}

// A process that attached as root and became nobody; then `does` runs in it, with our slot.
class GaveUpRights {
 public:
  template <class Does>
  GaveUpRights(const std::string& directory, Does does) {
    EXPECT_EQ(::pipe(from_.data()), 0);
    EXPECT_EQ(::pipe(to_.data()), 0);
    child_ = ::fork();
    if (child_ != 0) return;
    auto attached = SameHostLink::attach({.directory = directory});
    constexpr uid_t nobody = 65534;
    if (!attached || ::setresgid(nobody, nobody, nobody) != 0 || ::setresuid(nobody, nobody, nobody) != 0)
      ::_exit(2);
    const Slot mine = (*attached)->slot();
    Slot theirs = 0;
    if (::write(from_[1], &mine, sizeof mine) != sizeof mine ||
        ::read(to_[0], &theirs, sizeof theirs) != sizeof theirs)
      ::_exit(3);
    ::_exit(does(**attached, theirs) ? 0 : 1);
  }
  Slot slot() const {
    Slot slot = 0;
    EXPECT_EQ(::read(from_[0], &slot, sizeof slot), static_cast<ssize_t>(sizeof slot));
    return slot;
  }
  // Tells it our slot; how it ended.
  int meet(Slot ours) {
    EXPECT_EQ(::write(to_[1], &ours, sizeof ours), static_cast<ssize_t>(sizeof ours));
    int status = 0;
    ::waitpid(child_, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  }

 private:
  std::array<int, 2> from_{}, to_{};
  pid_t child_ = 0;
};

TEST_F(LinkDirectory, is_left_open_by_a_process_that_gave_up_its_user) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  GaveUpRights daemon(directory(), [](SameHostLink&, Slot) { return true; });
  const Slot slot = daemon.slot();
  auto ours = SameHostLink::attach({.directory = directory()});
  ASSERT_TRUE(ours) << ours.error().what;
  const auto met = (*ours)->connect(slot, 5s);
  EXPECT_TRUE(met) << met.error().what;
  EXPECT_EQ(daemon.meet((*ours)->slot()), 0);
}

TEST_F(LinkDirectory, is_entered_no_more_by_a_process_that_gave_up_its_user_and_says_so) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  GaveUpRights daemon(directory(), [](SameHostLink& link, Slot theirs) {
    const auto met = link.connect(theirs, 200ms);
    return !met && met.error().code == std::errc::permission_denied &&
           met.error().what.find("runs as user 65534 now") != std::string::npos;
  });
  daemon.slot();
  auto ours = SameHostLink::attach({.directory = directory()});
  ASSERT_TRUE(ours) << ours.error().what;
  EXPECT_EQ(daemon.meet((*ours)->slot()), 0);
}

}  // namespace
}  // namespace weir::link
