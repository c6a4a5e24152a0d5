// --cluster: what redis-cli's cluster manager shows without changing anything. Any node of the cluster is
// named; CLUSTER NODES there lists the others.
#include <fmt/core.h>

#include <algorithm>
#include <bitset>
#include <charconv>
#include <map>
#include <set>

#include "cli/shell/tasks.hpp"
#include "cluster/key_slot.hpp"
#include "cluster/node_address.hpp"

namespace weir::shell {
namespace {

using client::ErrorKind;
using client::fail;
using client::Result;

constexpr client::Milliseconds node_connect_limit{10'000};
constexpr std::string_view help =
    R"(Cluster commands, which change nothing:
  call   HOST:PORT COMMAND [ARG...]   run a command at every node
  check  HOST:PORT                    show the nodes, and whether they agree and have all slots
  info   HOST:PORT                    count keys, slots and replicas of every primary
  help

HOST:PORT is any node of the cluster. redis-cli and valkey-cli also create and change clusters (create, fix, reshard,
rebalance, add-node, del-node, set-timeout, import, backup).
)";

using Slots = std::bitset<cluster::slot_count>;

struct Node {
  std::string id;
  cluster::NodeAddress address;
  std::string replicates;  // the id of its primary; empty: it is one
  Slots slots;
  std::vector<std::string> migrating, importing;  // slots on their way
};

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(at, begin), text.size());
    if (end > begin) parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

// "17", "0-5460", "[93->-ID]" (migrating), "[93-<-ID]" (importing).
void take_slots(Node& node, std::string_view text) {
  if (text.starts_with('[')) {
    text.remove_prefix(1);
    auto& on_their_way = text.find("->-") != text.npos ? node.migrating : node.importing;
    on_their_way.emplace_back(text.substr(0, text.find('-')));
    return;
  }
  const std::size_t dash = text.find('-');
  const auto first = cluster::read_number(text.substr(0, dash), cluster::slot_count - 1);
  const auto last =
      dash == text.npos ? first : cluster::read_number(text.substr(dash + 1), cluster::slot_count - 1);
  if (!first || !last) return;
  for (std::size_t slot = *first; slot <= *last; ++slot) node.slots.set(slot);
}

// A line of CLUSTER NODES; nullopt: it makes no sense, or the node has no address.
std::optional<Node> read_node(std::string_view line, const std::string& asked_host) {
  const auto words = split(line, ' ');
  constexpr std::size_t fixed_words = 8;
  if (words.size() < fixed_words) return std::nullopt;
  const auto address = cluster::read_address(words[1].substr(0, words[1].find('@')), asked_host);
  if (!address) return std::nullopt;
  Node node{std::string(words[0]), *address, {}, {}, {}, {}};
  if (words[3] != "-") node.replicates = words[3];
  for (std::size_t i = fixed_words; i < words.size(); ++i) take_slots(node, words[i]);
  return node;
}

class Cluster {
 public:
  explicit Cluster(const Options& options) : options_(options) {}

  // Asks the named node about the others. Redis lists the node that was asked first.
  Result<void> look(const cluster::NodeAddress& at) {
    auto reply = ask(at, {"CLUSTER", "NODES"});
    if (!reply) return std::unexpected(std::move(reply.error()));
    if (reply->is_error())
      return fail(ErrorKind::refused, fmt::format("[ERR] Node {} {}", at.text(), reply->text));
    for (const std::string_view line : split(reply->text, '\n')) {
      auto node = read_node(line, at.host);
      if (!node) continue;
      const bool asked = split(line, ' ')[2].find("myself") != std::string_view::npos;
      nodes.insert(asked ? nodes.begin() : nodes.end(), std::move(*node));
    }
    if (nodes.empty())
      return fail(ErrorKind::protocol, "[ERR] Node " + at.text() + " is not configured as a cluster node.");
    return {};
  }

  Result<client::Reply> ask(const cluster::NodeAddress& at, const client::Arguments& command) {
    auto& session = sessions_[at];
    if (session == nullptr) {
      client::Endpoint endpoint = options_.server.endpoint();
      endpoint.host = at.host;
      endpoint.port = at.port;
      auto opened = client::Session::open(endpoint, node_connect_limit);
      if (!opened) return std::unexpected(std::move(opened.error()));
      if (auto greeted = (*opened)->log_in(options_.server.login); !greeted)
        return std::unexpected(std::move(greeted.error()));
      session = std::move(*opened);
    }
    return session->ask(command);
  }

  std::size_t replicas_of(const Node& primary) const {
    return static_cast<std::size_t>(std::ranges::count(nodes, primary.id, &Node::replicates));
  }

  std::vector<Node> nodes;

 private:
  const Options& options_;
  std::map<cluster::NodeAddress, std::unique_ptr<client::Session>> sessions_;
};

Result<void> show_info(Cluster& cluster) {
  long long keys = 0;
  std::size_t primaries = 0;
  for (const Node& node : cluster.nodes) {
    if (!node.replicates.empty()) continue;
    const auto size = cluster.ask(node.address, {"DBSIZE"});
    if (!size) return std::unexpected(size.error());
    if (size->type != client::ReplyType::integer)
      return fail(ErrorKind::refused,
                  fmt::format("Node {} replied with error:\n{}", node.address.text(), size->text));
    long long here = 0;
    std::from_chars(size->text.data(), size->text.data() + size->text.size(), here);
    fmt::print("{} ({}...) -> {} keys | {} slots | {} slaves.\n", node.address.text(), node.id.substr(0, 8),
               here, node.slots.count(), cluster.replicas_of(node));
    keys += here;
    ++primaries;
  }
  fmt::print("[OK] {} keys in {} masters.\n{:.2f} keys per slot on average.\n", keys, primaries,
             static_cast<float>(keys) / cluster::slot_count);
  return {};
}

// "[0-5460],[5462]"
std::string ranges_of(const Slots& slots) {
  std::string text;
  for (std::size_t slot = 0; slot < slots.size(); ++slot) {
    if (!slots[slot]) continue;
    std::size_t last = slot;
    while (last + 1 < slots.size() && slots[last + 1]) ++last;
    text += (text.empty() ? "" : ",") +
            (last == slot ? fmt::format("[{}]", slot) : fmt::format("[{}-{}]", slot, last));
    slot = last;
  }
  return text;
}

void show_nodes(const Cluster& cluster) {
  for (const Node& node : cluster.nodes) {
    const bool primary = node.replicates.empty();
    fmt::print("{}: {} {}\n   slots:{} ({} slots) {}\n", primary ? 'M' : 'S', node.id, node.address.text(),
               ranges_of(node.slots), node.slots.count(), primary ? "master" : "slave");
    if (!primary) fmt::print("   replicates {}\n", node.replicates);
    if (const auto replicas = cluster.replicas_of(node); replicas != 0)
      fmt::print("   {} additional replica(s)\n", replicas);
  }
}

// Which primary has which slots, as one node sees it. It alone knows which of its slots are on their way.
Result<std::set<std::string>> slots_as_seen_by(Cluster& cluster, Node& at) {
  const auto reply = cluster.ask(at.address, {"CLUSTER", "NODES"});
  if (!reply) return std::unexpected(reply.error());
  std::set<std::string> seen;
  for (const std::string_view line : split(reply->text, '\n')) {
    auto node = read_node(line, at.address.host);
    if (!node) continue;
    if (node->slots.any()) seen.insert(node->id + ranges_of(node->slots));
    if (node->id != at.id) continue;
    at.migrating = std::move(node->migrating);
    at.importing = std::move(node->importing);
  }
  return seen;
}

Result<bool> nodes_agree(Cluster& cluster) {
  std::set<std::set<std::string>> views;
  for (Node& node : cluster.nodes) {
    auto seen = slots_as_seen_by(cluster, node);
    if (!seen) return std::unexpected(std::move(seen.error()));
    views.insert(std::move(*seen));
  }
  return views.size() == 1;
}

bool show_open_slots(const Node& node, const std::vector<std::string>& slots, std::string_view state) {
  if (slots.empty()) return false;
  std::string names;
  for (const std::string& slot : slots) names += (names.empty() ? "" : ",") + slot;
  fmt::print("[WARNING] Node {} has slots in {} state {}.\n", node.address.text(), state, names);
  return true;
}

Result<bool> check(Cluster& cluster) {
  if (auto shown = show_info(cluster); !shown) return std::unexpected(shown.error());
  fmt::print(">>> Performing Cluster Check (using node {})\n", cluster.nodes.front().address.text());
  show_nodes(cluster);
  const auto agree = nodes_agree(cluster);
  if (!agree) return agree;
  bool good = *agree;
  fmt::print("{}\n", good ? "[OK] All nodes agree about slots configuration."
                          : "[ERR] Nodes don't agree about configuration!");
  fmt::print(">>> Check for open slots...\n");
  Slots covered;
  for (const Node& node : cluster.nodes) {
    good &= !show_open_slots(node, node.migrating, "migrating");
    good &= !show_open_slots(node, node.importing, "importing");
    covered |= node.slots;
  }
  fmt::print(">>> Check slots coverage...\n");
  if (covered.all()) {
    fmt::print("[OK] All {} slots covered.\n", covered.size());
  } else {
    fmt::print("[ERR] Not all {} slots are covered by nodes.\n\n", covered.size());
    good = false;
  }
  return good;
}

void call_all(Cluster& cluster, const client::Arguments& command, const Options& options) {
  fmt::print(">>> Calling");
  for (const std::string& word : command) fmt::print(" {}", word);
  fmt::print("\n");
  for (const Node& node : cluster.nodes) {
    const auto reply = cluster.ask(node.address, command);
    fmt::print("{}: {}\n", node.address.text(),
               reply ? reply_text(*reply, Output::raw, {.element = options.delimiters.element, .reply = ""})
                     : "Failed!");
  }
}

}  // namespace

int manage_cluster(const Options& options) {
  const auto& order = options.cluster_order;
  if (order[0] == "help") {
    fmt::print("{}", help);
    return 0;
  }
  const bool known = order[0] == "call" || order[0] == "check" || order[0] == "info";
  if (!known)
    return failed(
        {ErrorKind::unsupported,
         fmt::format("weir-cli --cluster does not have {}, which redis-cli and valkey-cli have; weir-cli "
                     "--cluster help lists its commands (-c follows redirections)",
                     order[0])});
  const auto at = order.size() > 1 ? cluster::read_address(order[1]) : std::nullopt;
  if (!at || (order[0] == "call") != (order.size() > 2))
    return failed({ErrorKind::usage,
                   "[ERR] Wrong number of arguments for specified --cluster sub command; see "
                   "weir-cli --cluster help"});
  Cluster cluster(options);
  if (auto looked = cluster.look(*at); !looked) return failed(looked.error());
  if (order[0] == "call") {
    call_all(cluster, {order.begin() + 2, order.end()}, options);
    return 0;
  }
  if (order[0] == "check") {
    const auto good = check(cluster);
    return good ? (*good ? 0 : 1) : failed(good.error());
  }
  const auto shown = show_info(cluster);
  return shown ? 0 : failed(shown.error());
}

}  // namespace weir::shell
