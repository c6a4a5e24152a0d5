#include "tests/bystander/requests.hpp"

#include <openssl/ssl.h>

#include <array>
#include <memory>

#include "rpc/codec/method.hpp"
#include "rpc/wire/frame.hpp"
#include "tests/bystander/services.hpp"
#include "tests/kv/wire_client.hpp"

namespace weir::bystander {
namespace {

std::string frame(const rpc::FrameHeader& header, const std::string& body) {
  std::string bytes(rpc::frame_header_bytes, 0);
  rpc::encode(header, reinterpret_cast<std::byte*>(bytes.data()));
  return bytes + body;
}

rpc::FrameHeader request_header(std::uint64_t number, std::size_t body_bytes) {
  rpc::FrameHeader header;
  header.id = number;
  header.method = rpc::method_number<echo>;
  header.body_bytes = static_cast<std::uint32_t>(body_bytes);
  return header;
}

// MessagePack: an array of one argument, which is a text (0xdb, str 32) or an array (0xdd, array 32).
std::string arguments(std::uint32_t claimed, const std::string& text, char kind = '\xdb') {
  std::string body{'\x91', kind};
  for (int shift = 24; shift >= 0; shift -= 8) body += static_cast<char>(claimed >> shift & 0xff);
  return body + text;
}

}  // namespace

std::string credentials(Protocol protocol) {
  if (protocol == Protocol::resp) return kv::testing::encode({"AUTH", password});
  rpc::FrameHeader header;
  header.kind = rpc::FrameKind::credentials;
  header.body_bytes = sizeof password - 1;
  return frame(header, password);
}

std::string echo_request(Protocol protocol, std::uint64_t number, std::size_t bytes) {
  const std::string text(bytes, 'e');
  if (protocol == Protocol::resp) return kv::testing::encode({"ECHO", text});
  const std::string body = arguments(static_cast<std::uint32_t>(bytes), text);
  return frame(request_header(number, body.size()), body);
}

std::string request_of_parts(Protocol protocol, std::uint64_t number, std::uint32_t parts) {
  if (protocol == Protocol::resp) {
    std::string bytes = "*" + std::to_string(parts + 1) + "\r\n$6\r\nEXISTS\r\n";
    for (std::uint32_t i = 0; i < parts; ++i) bytes += "$1\r\nx\r\n";
    return bytes;
  }
  const std::string empty_texts(parts, '\xa0');
  const std::string body = arguments(parts, empty_texts, '\xdd');
  rpc::FrameHeader header = request_header(number, body.size());
  header.method = rpc::method_number<count>;
  return frame(header, body);
}

std::string huge_claim(Protocol protocol, std::mt19937_64& random) {
  const std::string some(random() % (64 << 10), 'h');
  if (protocol == Protocol::resp) {
    const std::string claims[] = {"*1048576\r\n",
                                  "*2147483647\r\n",
                                  "*1048576\r\n$536870912\r\n" + some,
                                  "*3\r\n$3\r\nSET\r\n$1\r\nx\r\n$536870912\r\n" + some,
                                  "*-1\r\n$-5\r\n",
                                  "*2\r\n$4\r\nECHO\r\n$99999999999999999999\r\n" + some};
    return claims[random() % std::size(claims)];
  }
  rpc::FrameHeader header = request_header(1 + random() % 100, (std::size_t{64} << 20) - random() % 100);
  switch (random() % 4) {
    case 0:
      return frame(header, some);  // a body that never becomes complete
    case 1:
      header.body_bytes = 0;
      header.attachment_bytes = 1u << 30;
      return frame(header, some);
    case 2:
      header.body_bytes = 0xffffffff;
      return frame(header, some);
    default: {
      const std::string body = arguments(0xfffffff0, some);
      header.body_bytes = static_cast<std::uint32_t>(body.size());
      return frame(header, body);
    }
  }
}

std::string broken_request(Protocol protocol, std::mt19937_64& random) {
  std::string bytes = echo_request(protocol, random() % 100, random() % 300);
  for (std::uint64_t changes = 1 + random() % 4; changes > 0; --changes) {
    const std::size_t at = random() % bytes.size();
    if (random() % 4 == 0)
      bytes.insert(at, bytes.substr(at, random() % 50));
    else if (random() % 4 == 0)
      bytes.erase(at, 1 + random() % 20);
    else
      bytes[at] = static_cast<char>(random());
    if (bytes.empty()) return "?";
  }
  return bytes;
}

std::string client_hello() {
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()),
                                                                  &SSL_CTX_free);
  const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context.get()), &SSL_free);
  BIO* out = BIO_new(BIO_s_mem());
  SSL_set_bio(ssl.get(), BIO_new(BIO_s_mem()), out);
  SSL_set_connect_state(ssl.get());
  SSL_do_handshake(ssl.get());
  char* bytes = nullptr;
  const long count = BIO_get_mem_data(out, &bytes);
  return std::string(bytes, static_cast<std::size_t>(count));
}

}  // namespace weir::bystander
