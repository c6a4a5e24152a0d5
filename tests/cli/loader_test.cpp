// Which libibverbs a program finds under `weir run`, however it searches.
#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "cli/weir/launch/program_file.hpp"
#include "tests/cli/run_weir.hpp"

namespace weir::command {
namespace {

using testing::HasSubstr;
using testing::Not;

#ifdef DROP_IN_LIBRARIES  // not with sanitizers, whose runtime must be the first library

struct Search {
  const char* name;
  std::vector<std::string> command;
};
void PrintTo(const Search& search, std::ostream* out) { *out << search.name; }

class ProgramUnderWeirRun : public testing::TestWithParam<Search> {};

TEST_P(ProgramUnderWeirRun, finds_weirs_libibverbs) {
  std::vector<std::string> words{"run", "--lib-dir", DROP_IN_LIBRARIES, "--"};
  words.insert(words.end(), GetParam().command.begin(), GetParam().command.end());
  const auto ended = run_weir(words);
  EXPECT_EQ(ended.status, 0);
  EXPECT_THAT(ended.out, HasSubstr(DROP_IN_LIBRARIES "/libibverbs.so.1"));
  EXPECT_THAT(ended.out, Not(HasSubstr("other_verbs")));
}

INSTANTIATE_TEST_SUITE_P(
    By, ProgramUnderWeirRun,
    testing::Values(Search{"runpath", {RUNPATH_PROGRAM}}, Search{"rpath", {RPATH_PROGRAM}},
                    Search{"soname_of_a_bundle", {BUNDLE_PROGRAM}},
                    Search{"a_script_that_sets_the_path_anew",
                           {"sh", "-c",
                            "LD_LIBRARY_PATH=" + fs::path(OTHER_VERBS).parent_path().string() +
                                " exec " RUNPATH_PROGRAM}},
                    Search{"a_script_that_preloads_something_else",
                           {"sh", "-c", "LD_PRELOAD= exec " RUNPATH_PROGRAM}},
                    Search{"dlopen_of_the_soname", {RPATH_PROGRAM, "dlopen", "libibverbs.so.1"}},
                    Search{"dlopen_of_the_link_name", {RPATH_PROGRAM, "dlopen", "libibverbs.so"}},
                    Search{"dlopen_of_a_path", {RPATH_PROGRAM, "dlopen", OTHER_VERBS}}),
    [](const auto& search) { return std::string(search.param.name); });

// The C library looks for a plugin in the RUNPATH of the library that called dlopen.
TEST(ProgramUnderWeirRunToo, finds_its_plugins_by_its_own_runpath) {
  const auto ended = run_weir({"run", "--lib-dir", DROP_IN_LIBRARIES, "--", RUNPATH_PROGRAM, "plugin"});
  EXPECT_EQ(ended.status, 0);
  EXPECT_THAT(ended.out, HasSubstr("plugin found"));
}

#endif

TEST(ProgramWithRpath, is_refused_where_nothing_can_be_preloaded_before_it) {
  TemporaryDirectory files;
  for (const char* library : {"libibverbs.so.1", "librdmacm.so.1"})
    files.write(fs::path("a b") / library, "");
  const std::string libraries = files.path() / "a b";
  const auto refused = run_weir({"run", "--lib-dir", libraries, "--", RPATH_PROGRAM});
  EXPECT_EQ(refused.status, 126);
  EXPECT_THAT(refused.out, HasSubstr("DT_RPATH"));
  EXPECT_THAT(refused.out, HasSubstr("name the link with --lib-dir"));
  EXPECT_TRUE(looks_in_its_own_path_first(RPATH_PROGRAM));
  EXPECT_FALSE(looks_in_its_own_path_first(RUNPATH_PROGRAM));
}

// An ELF file with only the segment that names the dynamic linker.
std::string program_of(const std::string& linker) {
  Elf64_Ehdr elf{};
  std::memcpy(elf.e_ident, ELFMAG, SELFMAG);
  elf.e_ident[EI_CLASS] = ELFCLASS64;
  elf.e_phoff = sizeof elf;
  elf.e_phentsize = sizeof(Elf64_Phdr);
  elf.e_phnum = 1;
  Elf64_Phdr segment{};
  segment.p_type = PT_INTERP;
  segment.p_offset = sizeof elf + sizeof segment;
  segment.p_filesz = linker.size() + 1;
  std::string file(reinterpret_cast<const char*>(&elf), sizeof elf);
  file.append(reinterpret_cast<const char*>(&segment), sizeof segment);
  return file + linker + '\0';
}

TEST(ProgramFile, of_another_c_library_is_refused_by_its_name) {
  const std::pair<const char*, const char*> rows[] = {{"/lib/ld-musl-x86_64.so.1", "musl"},
                                                      {"/lib/ld64-uClibc.so.1", "uClibc"},
                                                      {"/system/bin/linker64", "Android"},
                                                      {"/lib64/ld-linux-x86-64.so.2", ""},
                                                      {"/opt/musl/lib/ld-linux-x86-64.so.2", ""}};
  TemporaryDirectory files;
  for (const auto& [linker, name] : rows) {
    files.write("program", program_of(linker), 0755);
    const auto why = why_libraries_cannot_be_replaced(files.path() / "program");
    if (*name == '\0')
      EXPECT_EQ(why, "") << linker;
    else
      EXPECT_THAT(why, HasSubstr(name)) << linker;
  }
}

}  // namespace
}  // namespace weir::command
