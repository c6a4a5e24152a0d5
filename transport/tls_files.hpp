// What a user names for one end of TLS: certificates, and how the other end is judged. A value.
#pragma once

#include <cstdint>
#include <string>

namespace weir::transport {

// The other end's certificate: not looked at, checked if there is one, or a condition.
enum class PeerCertificate : std::uint8_t { ignored, optional, required };

// Files in PEM form; empty: none.
struct TlsFiles {
  std::string certificate{};  // this end's; with it goes `key`
  std::string key{};
  std::string key_password{};
  std::string authorities{};  // who may sign the other end's: a file, a directory, or both
  std::string authorities_directory{};
  bool system_authorities = false;  // where neither is named: the system's
  PeerCertificate peer = PeerCertificate::required;
  std::string ciphers{};       // of TLS 1.2, in OpenSSL's words; empty: OpenSSL's own choice
  std::string ciphersuites{};  // of TLS 1.3
  // OpenSSL asks at the terminal for a key's password that is not given. Not for a server: all would wait for
  // the answer.
  bool asks_for_password = false;

  bool operator==(const TlsFiles&) const = default;
};

}  // namespace weir::transport
