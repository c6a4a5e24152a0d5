// A traced program's files are complete however it ends. No exit handler runs in these cases.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/scratch_directory.hpp"
#include "tests/verbs/verbs_test.hpp"

namespace weir::verbs_test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// Writes once, sees it complete, and returns with everything still there.
bool write_once() {
  auto* const context = new Context(open_device());
  auto* const pd = new Pd(ibv_alloc_pd(context->get()));
  auto* const cq = new Cq(ibv_create_cq(context->get(), 16, nullptr, nullptr, 0));
  ibv_qp_init_attr init = init_attr(cq->get());
  auto* const from = new Qp(ibv_create_qp(pd->get(), &init));
  auto* const to = new Qp(ibv_create_qp(pd->get(), &init));
  auto* const memory = new Buffer(pd->get(), 64);
  if (bring_up(from->get(), (*to)->qp_num) != 0 || bring_up(to->get(), (*from)->qp_num) != 0) return false;
  ibv_sge piece = memory->sge(0, 8);
  ibv_send_wr wr = send_wr(77, piece, IBV_WR_RDMA_WRITE);
  wr.wr.rdma.remote_addr = memory->addr() + 32;
  wr.wr.rdma.rkey = memory->rkey();
  return post(from->get(), wr) == 0 && completed(wait_for(cq->get()), 77);
}

struct Ending {
  const char* name;
  void (*end)();
};
const Ending endings[] = {{"_exit", [] { ::_exit(0); }},
                          {"killed", [] { ::raise(SIGKILL); }},
                          {"execve", [] { ::execl("/bin/true", "true", nullptr); }}};

TEST(TraceEnding, leaves_all_that_was_done_in_the_files) {
  use_own_runtime_directory();
  for (const auto& [name, end] : endings) {
    const test::ScratchDirectory files;
    const fs::path log = fs::path(files.path()) / "log", pcap = fs::path(files.path()) / "pcap";
    const pid_t child = ::fork();
    if (child == 0) {
      ::setenv("WEIR_TRACE_LOG", log.c_str(), 1);
      ::setenv("WEIR_TRACE_PCAP", pcap.c_str(), 1);
      if (!write_once()) ::_exit(1);
      end();
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0) << name;
    std::ifstream file(log);
    const std::string text(std::istreambuf_iterator<char>(file), {});
    EXPECT_THAT(text, HasSubstr(" post WRITE wr_id 0x4d")) << name;
    EXPECT_THAT(text, HasSubstr(" comp WRITE wr_id 0x4d")) << name;
    EXPECT_TRUE(fs::exists(pcap) && fs::file_size(pcap) > 0) << name;
  }
}

}  // namespace
}  // namespace weir::verbs_test
