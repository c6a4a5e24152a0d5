#include "twin/hosts/running_network.hpp"

#include <sys/socket.h>

#include "twin/hosts/descriptors.hpp"
#include "twin/hosts/folder.hpp"
#include "twin/hosts/network_plan.hpp"

namespace weir::hosts {
namespace {

constexpr std::string_view granted = "ok\n";

std::unexpected<Error> no_such_host(const std::string& folder, const std::string& host) {
  std::string what = "the network has no host '" + host + "'";
  if (const auto listed = list_hosts(folder); listed && !listed->hosts.empty())
    what += "; it has " + listed->hosts.front().name +
            (listed->hosts.size() > 1 ? " to " + listed->hosts.back().name : "");
  return failure(Cause::no_host, std::move(what));
}

// The answer without its "ok".
Result<Message> ask(const std::string& folder, const Request& request) {
  const auto connection = connect_to_keeper(folder);
  if (!connection) return std::unexpected(connection.error());
  if (!send_with_descriptors(connection->get(), text_of(request), {}))
    return failure_errno(errno, "cannot ask the keeper of the network");
  auto answer = receive_with_descriptors(connection->get());
  if (!answer) return answer;
  if (answer->text.empty()) return failure(Cause::no_network, "the keeper of the network has ended");
  if (!answer->text.starts_with(granted)) {
    if (answer->text == "no such host") return no_such_host(folder, request.host);
    if (answer->text == "no such cable")
      return failure(Cause::no_host, "the network has no cable between '" + request.host + "' and '" +
                                         request.other + "'; weir fabric list NAME shows the cables");
    return failure(Cause::system, "the keeper of the network says " + answer->text);
  }
  answer->text.erase(0, granted.size());
  // Until all of it is gone, as the next start would find it.
  char nothing = 0;
  if (request.kind == Request::Kind::end)
    while (::recv(connection->get(), &nothing, 1, 0) > 0) {
    }
  return answer;
}

}  // namespace

Result<Listing> list_hosts(const std::string& folder) {
  const auto answer = ask(folder, {Request::Kind::list, {}, {}});
  if (!answer) return std::unexpected(answer.error());
  auto listing = read_listing(answer->text);
  if (!listing)
    return failure(Cause::system,
                   "the keeper of the network is of another version; end it and start it anew");
  return *std::move(listing);
}

Result<HostNamespaces> find_host(const std::string& folder, const std::string& host) {
  if (!is_name(host)) return no_such_host(folder, host);
  auto answer = ask(folder, {Request::Kind::join, host, {}});
  if (!answer) return std::unexpected(answer.error());
  if (answer->descriptors.size() != namespaces)
    return failure(Cause::system,
                   "the keeper gave too few descriptors; raise the limit of open files (ulimit -n)");
  HostNamespaces found;
  for (std::size_t index = 0; index < namespaces; ++index)
    found[index] = std::move(answer->descriptors[index]);
  return found;
}

Result<Variables> variables_of(const std::string& folder, const std::string& host) {
  if (!is_name(host)) return no_such_host(folder, host);
  const auto answer = ask(folder, {Request::Kind::variables, host, {}});
  if (!answer) return std::unexpected(answer.error());
  auto variables = read_variables(answer->text);
  if (!variables)
    return failure(Cause::system,
                   "the keeper of the network is of another version; end it and start it anew");
  return *std::move(variables);
}

Result<std::vector<ListedCable>> list_cables(const std::string& folder) {
  const auto answer = ask(folder, {Request::Kind::cables, {}, {}});
  if (!answer) return std::unexpected(answer.error());
  auto cables = read_cables(answer->text);
  if (!cables)
    return failure(Cause::system,
                   "the keeper of the network is of another version; end it and start it anew");
  return *std::move(cables);
}

Result<void> plug_between(const std::string& folder, const std::string& one, const std::string& other,
                          bool in) {
  for (const std::string& name : {one, other})
    if (!is_name(name)) return failure(Cause::no_host, "'" + name + "' cannot be a node's name");
  const auto answer = ask(folder, {in ? Request::Kind::plug_in : Request::Kind::plug_out, one, other});
  if (!answer) return std::unexpected(answer.error());
  return {};
}

Result<void> plug(const std::string& folder, const std::string& host, bool in) {
  if (!is_name(host)) return no_such_host(folder, host);
  const auto answer = ask(folder, {in ? Request::Kind::plug_in : Request::Kind::plug_out, host, {}});
  if (!answer) return std::unexpected(answer.error());
  return {};
}

Result<void> end_network(const std::string& folder) {
  const auto answer = ask(folder, {Request::Kind::end, {}, {}});
  if (!answer) return std::unexpected(answer.error());
  return {};
}

}  // namespace weir::hosts
