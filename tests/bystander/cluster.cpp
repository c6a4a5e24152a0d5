#include "tests/bystander/cluster.hpp"

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "tests/bystander/misdeeds.hpp"

namespace weir::bystander {
namespace {

std::string bulk(std::string_view text) {
  return "$" + std::to_string(text.size()) + "\r\n" + std::string(text) + "\r\n";
}

std::string range(int from, int to, std::uint16_t port) {
  return "*3\r\n:" + std::to_string(from) + "\r\n:" + std::to_string(to) + "\r\n*4\r\n" + bulk("127.0.0.1") +
         ":" + std::to_string(port) + "\r\n" + bulk("node-" + std::to_string(port)) + "*0\r\n";
}

}  // namespace

Cluster::Cluster() : place_(::socket(AF_INET, SOCK_STREAM, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(place_.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(place_.get(), 64) != 0 ||
      ::getsockname(place_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    throw std::system_error(errno, std::system_category());
  ::setenv(nodes::listening_variable, std::to_string(place_.get()).c_str(), 1);
  honest_.slots("*3\r\n" + range(0, nodes::slot - 1, honest_.port()) +
                range(nodes::slot, nodes::slot, ntohs(address.sin_port)) +
                range(nodes::slot + 1, 16383, honest_.port()));
  honest_.forget_requests();
  honest_.answers([texts = std::map<std::string, std::string>{{text_key, "a text"}}](
                      const kv::testing::FakeNode::Words& words) mutable -> std::optional<std::string> {
    if (words.size() == 3 && words[0] == "SET") {
      texts[words[1]] = words[2];
      return "+OK\r\n";
    }
    if (words.size() == 2 && words[0] == "GET") {
      const auto found = texts.find(words[1]);
      return found != texts.end() ? bulk(found->second) : "$-1\r\n";
    }
    return "-ERR unknown command\r\n";
  });
}

Cluster::~Cluster() { ::unsetenv(nodes::listening_variable); }

}  // namespace weir::bystander
