// The rules of NCCL's plugin documentation, and what the plugin promises beyond them, in one process that
// plays both ranks.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <optional>
#include <sstream>
#include <vector>

#include "nccl/wire.hpp"
#include "tests/nccl/counted_new.hpp"
#include "tests/nccl/rank.hpp"

namespace weir::nccl::testing_support {
namespace {

// Sets a variable during its lifetime; the plugin reads the environment when it is loaded and first
// initialised.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

// Plays both ranks.
struct Alone {
  std::unique_ptr<AnyNet> net;
  std::deque<std::string> said;
  Rank rank;

  explicit Alone(int version = 12)
      : net(open_net(NCCL_PLUGIN, version)),
        rank{*net,
             0,
             {[this](const std::string& line) { said.push_back(line); }, [this] { return hear(); }},
             1,
             {}} {
    check(net->init(keep_log()), "init");
  }
  ~Alone() { net->finalize(); }
  std::string hear() {
    std::string line = said.front();
    said.pop_front();
    return line;
  }
};

bool is_loaded() {
  void* library = dlopen(NCCL_PLUGIN, RTLD_NOW | RTLD_NOLOAD);
  if (library != nullptr) dlclose(library);
  return library != nullptr;
}

TEST(NcclRules, the_library_leaves_when_nccl_closes_it) {
  for (const int version : all_versions) {
    {
      Alone alone(version);
      close_pair(alone.rank, connect_pair(alone.rank));
      EXPECT_TRUE(is_loaded());
    }
    EXPECT_FALSE(is_loaded()) << "version " << version;
  }
}

// If no plugin is named NCCL opens libnccl-net.so, and RCCL librccl-net.so.
TEST(NcclRules, the_names_that_nccl_and_rccl_look_for_are_the_plugins) {
  const std::string plugin = NCCL_PLUGIN;
  const std::string folder = plugin.substr(0, plugin.rfind('/') + 1);
  void* by_its_own = dlopen(NCCL_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(by_its_own, nullptr) << dlerror();
  for (const char* name : {"libnccl-net.so", "librccl-net.so"}) {
    void* opened = dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(opened, nullptr) << dlerror();
    EXPECT_EQ(opened, by_its_own) << name;
    for (const int version : all_versions)
      EXPECT_NE(dlsym(opened, ("ncclNetPlugin_v" + std::to_string(version)).c_str()), nullptr) << name;
    dlclose(opened);
  }
  dlclose(by_its_own);
}

TEST(NcclRules, one_line_says_which_transport_is_used_and_why) {
  const std::size_t before = kept_log().size();
  Alone alone(11);
  const std::string line = kept_log().substr(before);
  EXPECT_NE(line.find("NET/Weir : using "), std::string::npos) << line;
  EXPECT_NE(line.find("interface version 11"), std::string::npos) << line;
  EXPECT_EQ(std::ranges::count(line, '\n'), 1) << line;
}

TEST(NcclRules, devices_look_as_the_settings_say) {
  const Variable devices("WEIR_NCCL_DEVICES", "3"), speeds("WEIR_NCCL_SPEEDS", "50000,400000"),
      rails("WEIR_NCCL_RAILS", "0,1,1"), planes("WEIR_NCCL_PLANES", "5"),
      paths("WEIR_NCCL_PCI_PATHS", "/sys/devices/pci0000:00/0000:00:02.0");
  for (const int version : all_versions) {
    Alone alone(version);
    int count = 0;
    ASSERT_EQ(alone.net->devices(&count), Status::success);
    ASSERT_EQ(count, 3);
    std::vector<AnyProperties> seen(3);
    for (int i = 0; i < 3; ++i)
      ASSERT_EQ(alone.net->properties(i, seen[static_cast<std::size_t>(i)]), Status::success);
    EXPECT_EQ(seen[0].speed_mbps, 50000);
    EXPECT_EQ(seen[2].speed_mbps, 400000);
    EXPECT_EQ(seen[0].pci_path, "/sys/devices/pci0000:00/0000:00:02.0");
    EXPECT_FALSE(seen[1].has_pci_path);
    EXPECT_NE(seen[0].guid, seen[1].guid) << "NCCL would take them for ports of one NIC";
    EXPECT_EQ(seen[1].merged_count, 1);
    EXPECT_EQ(seen[1].merged_first, 1);
    EXPECT_EQ(seen[1].pointer_support, pointer_host);
    EXPECT_EQ(seen[1].registration_is_global, 1);
    EXPECT_EQ(seen[1].max_receives, 8);
    EXPECT_LE(seen[1].max_p2p_bytes, max_message);
    EXPECT_GE(seen[1].max_p2p_bytes, std::size_t{1} << 20);  // a device may support less at a time
    EXPECT_EQ(seen[2].rail, version >= 12 ? 1 : -1);
    EXPECT_EQ(seen[2].plane, version >= 12 ? 5 : -1);
    AnyProperties none;
    EXPECT_EQ(alone.net->properties(3, none), Status::internal_error);
    // Any of the devices can connect.
    close_pair(alone.rank, connect_pair(alone.rank, 2));
  }
}

// examples/tensor/nccl_topology.xml, under the settings in its README.
TEST(NcclRules, the_example_topology_is_of_the_devices_that_the_plugin_makes) {
  const Variable software("WEIR_RDMA_PROVIDER", "weir"), devices("WEIR_NCCL_DEVICES", "4"),
      speeds("WEIR_NCCL_SPEEDS", "400000"), rails("WEIR_NCCL_RAILS", "0,1,0,1");
  std::ostringstream text;
  text << std::ifstream(NCCL_TOPOLOGY).rdbuf();
  const std::string topology = text.str();
  Alone alone;
  for (int i = 0; i < 4; ++i) {
    AnyProperties device;
    ASSERT_EQ(alone.net->properties(i, device), Status::success);
    const std::string element = "<net name=\"" + device.name + "\" dev=\"" + std::to_string(i) +
                                "\" speed=\"" + std::to_string(device.speed_mbps) + "\" port=\"" +
                                std::to_string(device.port) + "\" rail=\"" + std::to_string(device.rail) +
                                "\"";
    EXPECT_NE(topology.find(element), std::string::npos) << element;
  }
}

TEST(NcclRules, a_wrong_setting_refuses_the_plugin_and_is_named) {
  const Variable wrong("WEIR_NCCL_DEVICES", "many");
  const auto net = open_net(NCCL_PLUGIN, 12);
  EXPECT_EQ(net->init(keep_log()), Status::invalid_usage);
  EXPECT_NE(kept_log().find("WEIR_NCCL_DEVICES=\"many\""), std::string::npos) << kept_log();
}

TEST(NcclRules, connect_and_accept_return_without_a_peer) {
  Alone alone;
  std::array<unsigned char, handle_bytes> handle{};
  void *listener = nullptr, *send_comm = nullptr, *receive_comm = nullptr;
  ASSERT_EQ(alone.net->listen(0, handle.data(), &listener), Status::success);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(alone.net->accept(listener, &receive_comm), Status::success);
    EXPECT_EQ(receive_comm, nullptr);
  }
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(alone.net->connect(0, handle.data(), &send_comm), Status::success);
    EXPECT_EQ(send_comm, nullptr) << "nobody accepted";
  }
  EXPECT_EQ(alone.net->close_listen(listener), Status::success);
}

TEST(NcclRules, a_listener_that_is_gone_ends_the_attempt) {
  Alone alone;
  std::array<unsigned char, handle_bytes> handle{};
  void *listener = nullptr, *comm = nullptr;
  ASSERT_EQ(alone.net->listen(0, handle.data(), &listener), Status::success);
  ASSERT_EQ(alone.net->close_listen(listener), Status::success);
  Status status = Status::success;
  while (status == Status::success) status = alone.net->connect(0, handle.data(), &comm);
  EXPECT_EQ(status, Status::remote_error);
  EXPECT_EQ(comm, nullptr);
}

TEST(NcclRules, a_handle_of_another_plugin_is_refused) {
  Alone alone;
  std::array<unsigned char, handle_bytes> handle{};
  void* comm = nullptr;
  EXPECT_EQ(alone.net->connect(0, handle.data(), &comm), Status::remote_error);
  EXPECT_NE(kept_log().find("not of this plugin"), std::string::npos);
}

TEST(NcclRules, a_stranger_who_does_not_know_the_secret_is_rejected) {
  Alone alone;
  std::array<unsigned char, handle_bytes> bytes{};
  void *listener = nullptr, *send_comm = nullptr, *receive_comm = nullptr;
  ASSERT_EQ(alone.net->listen(0, bytes.data(), &listener), Status::success);
  Handle handle;
  std::memcpy(&handle, bytes.data(), sizeof handle);
  ++handle.secret;
  Status status = Status::success;
  while (status == Status::success) {
    status = alone.net->connect(0, &handle, &send_comm);
    ASSERT_EQ(send_comm, nullptr);
    EXPECT_EQ(alone.net->accept(listener, &receive_comm), Status::success);
    EXPECT_EQ(receive_comm, nullptr);
  }
  EXPECT_EQ(status, Status::remote_error);
  EXPECT_EQ(alone.net->close_listen(listener), Status::success);
}

TEST(NcclRules, a_part_of_what_is_registered_has_its_registration) {
  Alone alone;
  const Pair pair = connect_pair(alone.rank);
  std::vector<std::byte> memory(100000);
  void *whole = nullptr, *part = nullptr, *other = nullptr;
  ASSERT_EQ(alone.net->reg_mr(pair.send, memory.data(), 90000, &whole), Status::success);
  ASSERT_EQ(alone.net->reg_mr(pair.receive, memory.data() + 500, 1000, &part), Status::success);
  EXPECT_EQ(part, whole);
  ASSERT_EQ(alone.net->reg_mr(pair.receive, memory.data() + 500, 99500, &other), Status::success);
  EXPECT_NE(other, whole) << "it reaches further";
  EXPECT_EQ(alone.net->dereg_mr(pair.send, whole), Status::success);
  // The registration of the part still holds it.
  void* request = nullptr;
  void* data = memory.data() + 500;
  std::size_t bytes = 1000;
  int tag = 1;
  ASSERT_EQ(alone.net->irecv(pair.receive, 1, &data, &bytes, &tag, &part, &request), Status::success);
  ASSERT_NE(request, nullptr);
  void* sending = nullptr;
  while (sending == nullptr)
    check(alone.net->isend(pair.send, memory.data() + 2000, 1000, 1, other, &sending), "isend");
  wait(*alone.net, sending);
  wait(*alone.net, request);
  EXPECT_EQ(alone.net->dereg_mr(pair.receive, part), Status::success);
  EXPECT_EQ(alone.net->dereg_mr(pair.receive, other), Status::success);
  close_pair(alone.rank, pair);
}

TEST(NcclRules, memory_of_a_gpu_is_refused_with_the_way_round) {
  Alone alone;
  const Pair pair = connect_pair(alone.rank);
  std::array<std::byte, 64> memory{};
  void* region = nullptr;
  EXPECT_EQ(alone.net->reg_mr_of_type(pair.send, memory.data(), memory.size(), 2, &region),
            Status::invalid_usage);
  EXPECT_NE(kept_log().find("only host memory"), std::string::npos);
  close_pair(alone.rank, pair);
}

// NCCL's net_ib does so, and aws-ofi-nccl's message_transfer expects it where regIsGlobal is announced. A
// small message is a SEND, a longer one a WRITE.
TEST(NcclRules, a_message_longer_than_its_receive_is_cut) {
  Alone alone;
  const Pair pair = connect_pair(alone.rank);
  for (const std::size_t room : {0, 100, 9000}) {
    Buffer from(alone.rank, pair.send, 10000), into(alone.rank, pair.receive, 10000);
    std::ranges::fill(from.bytes(), std::byte{7});
    void* const receiving = receive(*alone.net, pair.receive, into, room, 0);
    void* const sending = send(*alone.net, pair.send, from, 10000, 0);
    int sent = -1, received = -1;
    wait(*alone.net, sending, &sent);
    wait(*alone.net, receiving, &received);
    EXPECT_EQ(sent, static_cast<int>(room));
    EXPECT_EQ(received, static_cast<int>(room));
    EXPECT_EQ(std::ranges::count(into.bytes(), std::byte{7}), static_cast<std::ptrdiff_t>(room));
  }
  close_pair(alone.rank, pair);
}

// aws-ofi-nccl's inflight_close: both ends deregister and close with requests under way, one a little
// earlier.
TEST(NcclRules, offers_of_a_peer_that_closed_can_be_used_and_fail) {
  Alone alone;
  const Pair pair = connect_pair(alone.rank);
  std::optional<Buffer> buffer_of_both;
  Buffer& buffer = buffer_of_both.emplace(alone.rank, pair.send, 1000);
  for (int i = 0; i < 3; ++i) ASSERT_NE(receive(*alone.net, pair.receive, buffer, 1000, 0), nullptr);
  ASSERT_EQ(alone.net->close_receive(pair.receive), Status::success);
  Status status = Status::success;
  for (int i = 0; i < 3; ++i) {
    void* request = nullptr;
    while (request == nullptr)
      ASSERT_EQ(alone.net->isend(pair.send, buffer.data(), 1000, 0, buffer.region(), &request),
                Status::success);
    int done = 0;
    while ((status = alone.net->test(request, &done, nullptr)) == Status::success) ASSERT_EQ(done, 0);
    EXPECT_EQ(status, Status::remote_error);
  }
  void* request = nullptr;
  EXPECT_EQ(alone.net->isend(pair.send, buffer.data(), 1000, 0, buffer.region(), &request),
            Status::remote_error);
  EXPECT_EQ(request, nullptr);
  buffer_of_both.reset();
  EXPECT_EQ(alone.net->close_send(pair.send), Status::success);
}

TEST(NcclRules, receives_beyond_the_limit_are_asked_for_again) {
  Alone alone;
  const Pair pair = connect_pair(alone.rank);
  {
    Buffer buffer(alone.rank, pair.send, 1000);
    std::vector<void*> requests;
    for (;;) {
      void *request = nullptr, *data = buffer.data(), *region = buffer.region();
      std::size_t bytes = 1000;
      int tag = 0;
      ASSERT_EQ(alone.net->irecv(pair.receive, 1, &data, &bytes, &tag, &region, &request), Status::success);
      if (request == nullptr) break;
      requests.push_back(request);
    }
    EXPECT_GE(requests.size(), static_cast<std::size_t>(max_requests));
    for (void* request : requests) {
      wait(*alone.net, send(*alone.net, pair.send, buffer, 10, 0));
      wait(*alone.net, request);
    }
    EXPECT_NE(receive(*alone.net, pair.receive, buffer, 1000, 0), nullptr);
    void *request = nullptr, *data[9] = {}, *regions[9] = {};
    std::size_t bytes[9] = {};
    int tags[9] = {};
    EXPECT_EQ(alone.net->irecv(pair.receive, 9, data, bytes, tags, regions, &request),
              Status::internal_error);
  }
  close_pair(alone.rank, pair);
}

TEST(NcclRules, messages_allocate_nothing) {
  Alone alone;
  const Pair pair = connect_pair(alone.rank);
  {
    Buffer buffer(alone.rank, pair.send, 100000);
    const auto exchange = [&] {
      for (std::size_t bytes = 1; bytes < 100000; bytes *= 3) {
        void* receiving = receive(*alone.net, pair.receive, buffer, bytes, 0);
        wait(*alone.net, send(*alone.net, pair.send, buffer, bytes, 0));
        wait(*alone.net, receiving);
      }
    };
    exchange();
    start_counting();
    exchange();
    EXPECT_EQ(stop_counting(), 0);
    start_counting();
    std::vector<int> something(100);
    EXPECT_EQ(stop_counting(), 1) << "this test counts";
  }
  close_pair(alone.rank, pair);
}

}  // namespace
}  // namespace weir::nccl::testing_support
