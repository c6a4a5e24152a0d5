// The files that a user names for one end of TLS: certificates, and how the other end is verified. A value.
#pragma once

#include <cstdint>
#include <string>

namespace weir::transport {

// The other end's certificate: not checked, checked if there is one, or required.
enum class PeerCertificate : std::uint8_t { ignored, optional, required };

// Files in PEM form; empty: none.
struct TlsFiles {
  std::string certificate{};  // this end's certificate; it goes with `key`
  std::string key{};
  std::string key_password{};
  std::string authorities{};  // who may sign the other end's certificate: a file, a directory, or both
  std::string authorities_directory{};
  bool system_authorities = false;  // if neither is named: use the system's authorities
  PeerCertificate peer = PeerCertificate::required;
  std::string ciphers{};       // ciphers of TLS 1.2, in OpenSSL's syntax; empty: OpenSSL's default
  std::string ciphersuites{};  // ciphersuites of TLS 1.3
  // Lets OpenSSL ask at the terminal for a key's password that was not given. Not for a server: all its
  // clients would wait for the answer.
  bool asks_for_password = false;

  bool operator==(const TlsFiles&) const = default;
};

}  // namespace weir::transport
