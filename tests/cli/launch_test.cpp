// What `weir run` passes to the dynamic linker and the NIC, for unusual paths and addresses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "cli/weir/launch/drop_in_libraries.hpp"
#include "tests/cli/weir_run_fixture.hpp"

namespace weir::command {
namespace {

using testing::HasSubstr;

// A directory that looks like that of the drop-in libraries. The files are empty, and the dynamic linker's
// complaint names the one it has found.
fs::path libraries_in(const TemporaryDirectory& files, const fs::path& name) {
  for (const char* library :
       {"libibverbs.so.1", "librdmacm.so.1", "libweir_view.so", "libweir_heap.so", "librspreload.so"})
    files.write(name / library, "");
  return files.path() / name;
}

TEST(WeirRunPath, with_a_space_in_it_is_one_path_to_the_dynamic_linker) {
  TemporaryDirectory files;
  const auto ended = run_weir(
      {"run", "--lib-dir", libraries_in(files, "a b"), "--share-memory", "--rsockets", "--", "true"});
  EXPECT_EQ(ended.status, 0);
  EXPECT_THAT(ended.out, HasSubstr("'libweir_view.so' from LD_PRELOAD cannot be preloaded (file too short)"));
  EXPECT_THAT(ended.out, HasSubstr("'libweir_heap.so' from LD_PRELOAD cannot be preloaded (file too short)"));
  EXPECT_THAT(ended.out, HasSubstr("'librspreload.so' from LD_PRELOAD cannot be preloaded (file too short)"));
}

// Root may enter every directory; run as another user.
class AsNobody {
 public:
  AsNobody() : was_root_(::geteuid() == 0) {
    if (was_root_) {
      EXPECT_EQ(::seteuid(65534), 0);
    }
  }
  ~AsNobody() {
    if (was_root_) {
      EXPECT_EQ(::seteuid(0), 0);
    }
  }

 private:
  const bool was_root_;
};

TEST(WeirRunPath, that_is_closed_to_the_user_is_told_from_one_that_is_not_there) {
  TemporaryDirectory files;
  const auto directory = libraries_in(files, "closed");
  fs::permissions(directory, fs::perms::none);
  const auto told = [&] {
    const AsNobody nobody;
    return find_drop_in_libraries(directory);
  }();
  fs::permissions(directory, fs::perms::owner_all);
  ASSERT_FALSE(told);
  EXPECT_THAT(told.error(), HasSubstr("permission denied"));
}

TEST(WeirRunPath, that_the_dynamic_linker_would_split_is_refused_by_name) {
  for (const std::string name : {"a:b", "a;b"}) {
    TemporaryDirectory files;
    const auto directory = libraries_in(files, name);
    const auto ended = run_weir({"run", "--lib-dir", directory, "--", "true"});
    EXPECT_EQ(ended.status, 126) << name;
    EXPECT_THAT(ended.out, HasSubstr(directory.string()));
    EXPECT_THAT(ended.out, HasSubstr("name that with --lib-dir"));
  }
}

TEST_F(WeirRun, refuses_a_gid_that_is_no_address) {
  for (const std::string gid :
       {"foo", "10.0.0", "fd00::1::2", "10.0.0.1,", ",", "10.0.0.1,x", "fe80::1%eth0"}) {
    const auto ended = run_weir({"run", "--gid", gid, "--", "true"});
    EXPECT_EQ(ended.status, 2) << gid;
    EXPECT_THAT(ended.out, HasSubstr("--gid"));
  }
  const auto addresses =
      run_weir({"run", "--lib-dir", libraries_.path(), "--gid", "10.0.0.1,fd00::1", "--", "true"});
  EXPECT_EQ(addresses.status, 0) << addresses.out;
}

TEST_F(WeirRun, says_that_an_empty_command_is_empty) {
  const auto ended = run({""});
  EXPECT_EQ(ended.status, 127);
  EXPECT_THAT(ended.out, HasSubstr("empty"));
}

}  // namespace
}  // namespace weir::command
