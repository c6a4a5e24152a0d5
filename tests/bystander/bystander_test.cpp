// One server with victims, bystanders and an attacker: a misbehaving client harms no other client.
//
// The test runs the real server programs, and attackers as separate processes. Victims and bystanders live in
// this process and use all five transports. The test measures how long a bystander waits, first while nobody
// misbehaves. The bound is ten times that: it detects a freeze, not a low speed.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iostream>
#include <random>

#include "tests/bystander/child.hpp"
#include "tests/bystander/clients.hpp"
#include "tests/bystander/cluster.hpp"
#include "tests/bystander/misdeeds.hpp"
#include "tests/bystander/services.hpp"
#include "tests/bystander/table.hpp"
#include "tests/certificates.hpp"

namespace weir::bystander {
namespace {

using std::chrono::milliseconds;

// The longest that a bystander may wait is ten times its longest wait before, within these limits: a single
// wait of an idle machine says little, and no machine is so slow. A newcomer over RDMA with TLS takes some
// ten exchanges with the server, each of which queues behind a flood: on a machine with two cores and ten
// other busy programs that took 5 s.
constexpr int most_times_the_control = 10;
constexpr std::chrono::seconds lowest_bound{2}, highest_bound{20};
// By then an attacker has done something, however busy the machine is.
constexpr std::chrono::seconds longest_start{30};
// The most by which one misdeed may enlarge the server.
constexpr std::int64_t most_growth_bytes = std::int64_t{512} << 20;

std::string from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

// Over RDMA the servers listen to other hosts as well, so that the NIC's UDP port is open to strangers.
constexpr const char* everywhere = "0.0.0.0";
std::string own_address(std::string_view transport) {
  return (transport.starts_with("rdma") ? everywhere : "127.0.0.1") + std::string(":0");
}
std::string on_this_host(std::string address) {
  if (const std::size_t at = address.find(everywhere); at != std::string::npos)
    address.replace(at, std::strlen(everywhere), "127.0.0.1");
  return address;
}

// Behind the gateway are nodes of this test.
enum class Kind : std::uint8_t { store, rpc, gateway };

Protocol protocol_of(Kind kind) { return kind == Kind::rpc ? Protocol::rpc : Protocol::resp; }

// weir-server or this test's RPC server, on all transports.
class AttackedServer {
 public:
  explicit AttackedServer(Kind kind) {
    ::setenv(authority_variable, test::certificates().certificate("ca").c_str(), 1);
    // Only root can give it away, and become another user.
    [[maybe_unused]] const int given =
        ::chown(others_folder_.path().c_str(), users::another_user, users::another_user);
    ::setenv(users::folder_variable, others_folder_.path().c_str(), 1);
    ::unsetenv(nodes::listening_variable);
    give_clock();
    if (kind == Kind::rpc) {
      start_rpc();
    } else {
      if (kind == Kind::gateway) cluster_.emplace();
      start_store();
    }
    ::unsetenv("LD_PRELOAD");
  }
  // In the order of `transports`.
  const std::vector<std::string>& addresses() const { return addresses_; }
  Child& process() { return *process_; }

 private:
  // The server to be started gets a clock that can be set. A program with sanitizers bears no such library.
  void give_clock() {
#ifdef WEIR_BYSTANDER_STEPPED_CLOCK
    constexpr std::int64_t right = 0;
    std::ofstream(folder_.file("clock"), std::ios::binary)
        .write(reinterpret_cast<const char*>(&right), sizeof right);
    ::setenv(clocks::file_variable, folder_.file("clock").c_str(), 1);
    ::setenv("LD_PRELOAD", WEIR_BYSTANDER_STEPPED_CLOCK, 1);
#endif
  }
  void start_store() {
    const test::Certificates& all = test::certificates();
    const std::string socket = folder_.file("s");
    std::vector<std::string> words{WEIR_SERVER,
                                   "--bind",
                                   "127.0.0.1",
                                   "--port",
                                   "-1",
                                   "--tls-port",
                                   "-1",
                                   "--rdma-port",
                                   "-1",
                                   "--rdma-tls-port",
                                   "-1",
                                   "--rdma-bind",
                                   everywhere,
                                   "--unixsocket",
                                   socket,
                                   "--requirepass",
                                   password,
                                   "--tls-cert-file",
                                   all.certificate("server"),
                                   "--tls-key-file",
                                   all.key("server"),
                                   "--tls-auth-clients",
                                   "no",
                                   "--rdma-provider",
                                   "weir"};
    if (cluster_) words.insert(words.end(), {"--cluster-gateway", cluster_->address()});
    process_.emplace(std::move(words));
    std::map<std::string, std::string> at;
    constexpr std::string_view says = "listening on ";
    for (std::string line; line.find("Ready to accept") == std::string::npos;) {
      line = process_->line();
      const std::size_t where = line.find(says);
      if (where == std::string::npos) continue;
      const std::string rest = line.substr(where + says.size());
      const std::size_t space = rest.find(' ');
      at[rest.substr(0, space)] = rest.substr(space + 1);
    }
    for (const char* name : {"tcp", "unix", "tls", "rdma", "rdma+tls"}) {
      const std::string transport = transports[addresses_.size()];
      addresses_.push_back(transport + "://" + on_this_host(at.at(name)));
    }
  }
  void start_rpc() {
    const test::Certificates& all = test::certificates();
    std::vector<std::string> words{WEIR_BYSTANDER_RPC_SERVER, all.certificate("server"), all.key("server")};
    for (const std::string transport : transports)
      words.push_back(transport + "://" + (transport == "unix" ? folder_.file("s") : own_address(transport)));
    process_.emplace(std::move(words));
    for (std::size_t i = 0; i < transports.size(); ++i) addresses_.push_back(on_this_host(process_->line()));
  }

  test::ScratchDirectory folder_, others_folder_;
  std::optional<Cluster> cluster_;
  std::vector<std::string> addresses_;
  std::optional<Child> process_;
};

class Harness {
 public:
  Harness(Kind kind, std::uint64_t seed)
      : protocol_(protocol_of(kind)),
        random_(seed),
        server_(kind),
        clients_{io_, protocol_, server_.addresses(), seed, kind == Kind::gateway ? Cluster::text_key : ""} {
    clients_.start();
  }

  // Nobody misbehaves: the baseline of the table.
  void look_on(milliseconds time) {
    begin("none", "-");
    pass(time);
    settle();
    const std::chrono::microseconds control(
        clients_.watch.select([](const Wait&) { return true; }).worst_us());
    bound_ =
        std::clamp<std::chrono::microseconds>(most_times_the_control * control, lowest_bound, highest_bound);
  }
  // Lasts `time` from the first deed, and then until every request made meanwhile has its answer.
  void endure(const Misdeed& misdeed, std::size_t transport, milliseconds time) {
    begin(std::string(misdeed.name), transports[transport]);
    {
      Child attacker({WEIR_BYSTANDER_ATTACKER, protocol_ == Protocol::resp ? "resp" : "rpc",
                      server_.addresses()[transport], std::string(misdeed.name), std::to_string(random_())});
      std::uint64_t& deeds = rows_.back().deeds;
      const auto latest = Clock::now() + longest_start;
      while (deeds == 0 && Clock::now() < latest && !frozen()) {
        pass(milliseconds(5));
        deeds += attacker.count();
      }
      for (const auto end = Clock::now() + time; Clock::now() < end && !frozen();) {
        pass(milliseconds(10));
        deeds += attacker.count();
      }
      settle();
      deeds += attacker.count();
      EXPECT_TRUE(attacker.alive()) << "the attacker gave up: " << name();
      EXPECT_GT(deeds, 0u) << "nothing was done: " << name();
    }
    if (goes_on()) settle();
  }

  // The bystanders' waits while the server is stopped for that long.
  std::chrono::microseconds longest_wait_of_stopped(milliseconds time) {
    const Child& server = server_.process();
    ::kill(server.pid(), SIGSTOP);
    const auto since = Clock::now();
    pass(time);
    // By then a newcomer and a resident have sent a request, or are about to.
    while (clients_.watch.longest_open(Clock::now()) < time && Clock::now() - since < bound_)
      pass(milliseconds(10));
    ::kill(server.pid(), SIGCONT);
    begin("stopped server", "-");
    settle();
    const auto during = static_cast<std::uint16_t>(rows_.size() - 1);
    return std::chrono::microseconds(
        clients_.watch.select([&](const Wait& w) { return w.during == during; }).worst_us());
  }

  // Whether the server is still alive.
  bool goes_on() const { return !frozen_ && !server_ended_; }

  void report(const std::string& title) {
    std::string text = title + "\n\n" + table_of(rows_, clients_.watch) + "\nvictims read " +
                       std::to_string(clients_.harm.texts) +
                       " texts back: " + std::to_string(clients_.harm.wrong.size()) + " wrong; " +
                       std::to_string(clients_.harm.errors.size()) + " connections lost or refused\n";
    std::cout << text << std::flush;
    if (const std::string path = from_environment("WEIR_BYSTANDER_TABLE"); !path.empty())
      std::ofstream(path, std::ios::app) << text << "\n";
  }

 private:
  std::string name() const { return rows_.back().misdeed + " over " + rows_.back().over; }

  void begin(std::string misdeed, std::string over) {
    resident_before_ = server_.process().resident_bytes();
    clients_.watch.during(static_cast<std::uint16_t>(rows_.size()));
    rows_.push_back({std::move(misdeed), std::move(over)});
  }
  void pass(milliseconds time) {
    for (const auto end = Clock::now() + time; Clock::now() < end;) io_.run_one_for(milliseconds(1));
    const auto now = static_cast<std::int64_t>(server_.process().resident_bytes());
    rows_.back().grown_bytes =
        std::max(rows_.back().grown_bytes, now - static_cast<std::int64_t>(resident_before_));
  }
  bool frozen() const { return clients_.watch.longest_open(Clock::now()) > bound_; }

  // Waits for the requests made meanwhile, and reports what was wrong.
  void settle() {
    const auto ended = Clock::now();
    while (!clients_.watch.all_since(ended) && !frozen()) pass(milliseconds(5));
    frozen_ = frozen_ || frozen();
    server_ended_ = !server_.process().alive();
    EXPECT_FALSE(server_ended_) << "the server ended: " << name();
    EXPECT_FALSE(frozen_) << "a bystander waits for more than " << bound_.count() << " us: " << name();
    if (frozen_) clients_.watch.give_up(Clock::now());
    EXPECT_LT(rows_.back().grown_bytes, most_growth_bytes) << "the server took too much memory: " << name();
    for (; wrong_told_ < clients_.harm.wrong.size(); ++wrong_told_)
      ADD_FAILURE() << name() << ": a victim, " << clients_.harm.wrong[wrong_told_];
    for (; errors_told_ < clients_.harm.errors.size(); ++errors_told_)
      ADD_FAILURE() << name() << ": " << clients_.harm.errors[errors_told_];
  }

  Protocol protocol_;
  std::mt19937_64 random_;
  asio::io_context io_{1};
  AttackedServer server_;
  Clients clients_;
  std::vector<Row> rows_;
  std::size_t resident_before_ = 0;
  std::chrono::microseconds bound_ = highest_bound;
  std::size_t wrong_told_ = 0, errors_told_ = 0;
  bool frozen_ = false, server_ended_ = false;
};

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::store:
      return "weir-server";
    case Kind::rpc:
      return "rpc";
    case Kind::gateway:
      return "gateway";
  }
  return "";
}

struct Campaign {
  std::uint64_t seed = 0;
  milliseconds each{120};  // for each misdeed over each transport
  int rounds = 1;
};

// Every misdeed that `wanted` selects, over every transport where it is possible, in an order from the seed.
template <class Wanted>
void endure_all(Kind kind, Campaign campaign, Wanted wanted) {
  if (const std::string seed = from_environment("WEIR_BYSTANDER_SEED"); !seed.empty())
    campaign.seed = std::stoull(seed);
  if (const std::string each = from_environment("WEIR_BYSTANDER_MS"); !each.empty())
    campaign.each = milliseconds(std::stoi(each));
  const std::string only = from_environment("WEIR_BYSTANDER_ONLY");
  std::cout << "WEIR_BYSTANDER_SEED=" << campaign.seed << std::endl;
  std::mt19937_64 random(campaign.seed);
  Harness harness(kind, campaign.seed);
  harness.look_on(milliseconds(1000));
  for (int round = 0; round < campaign.rounds && harness.goes_on(); ++round) {
    std::vector<std::pair<const Misdeed*, std::size_t>> order;
    for (const Misdeed& misdeed : misdeeds())
      for (std::size_t transport = 0; transport < transports.size(); ++transport)
        if (misdeed.possible(protocol_of(kind), transports[transport]) && wanted(misdeed, transport) &&
            (only.empty() || only == misdeed.name))
          order.emplace_back(&misdeed, transport);
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
    for (const auto& [misdeed, transport] : order)
      if (harness.goes_on()) harness.endure(*misdeed, transport, campaign.each);
  }
  harness.report(name_of(kind));
}

// The measurement itself must notice a wait.
TEST(Bystanders, notice_a_server_that_stops) {
  Harness harness(Kind::store, 1);
  harness.look_on(milliseconds(100));
  EXPECT_GE(harness.longest_wait_of_stopped(milliseconds(300)), milliseconds(300));
}

class BystanderTest : public testing::TestWithParam<Kind> {};

TEST_P(BystanderTest, nobody_waits_for_a_stranger) {
  const Campaign campaign{.seed = 4, .each = milliseconds(120)};
  endure_all(GetParam(), campaign, [](const Misdeed&, std::size_t) { return true; });
}

// Label slow: longer, in several orders, with a new seed each time. It also shows harm that takes time: a
// server that keeps what it cannot send grows by hundreds of MiB while replies are not read.
TEST_P(BystanderTest, slow_nobody_waits_for_thousands_of_misdeeds) {
  const Campaign campaign{.seed = std::random_device()(), .each = milliseconds(1000), .rounds = 3};
  endure_all(GetParam(), campaign, [](const Misdeed&, std::size_t) { return true; });
}

TEST(BystandersOfAGateway, do_not_wait_for_a_bad_node) {
  const Campaign campaign{.seed = 4, .each = milliseconds(500)};
  endure_all(Kind::gateway, campaign,
             [](const Misdeed& misdeed, std::size_t) { return misdeed.reach == Reach::node; });
}

INSTANTIATE_TEST_SUITE_P(Of, BystanderTest, testing::Values(Kind::store, Kind::rpc),
                         [](const auto& instance) {
                           return instance.param == Kind::store ? "weir_server" : "rpc";
                         });

}  // namespace
}  // namespace weir::bystander
