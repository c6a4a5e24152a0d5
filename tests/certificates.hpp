// Certificates created for one test program.
#pragma once

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "tests/scratch_directory.hpp"

namespace weir::test {

// An authority with a server and a client that it vouches for, and a stranger that another one vouches for.
class Certificates {
 public:
  Certificates() {
    make_authority("ca");
    make_authority("other-ca");
    make_signed("server", "ca");
    make_signed("client", "ca");
    make_signed("stranger", "other-ca");
  }
  std::string key(const std::string& name) const { return directory_.file(name + ".key"); }
  std::string certificate(const std::string& name) const { return directory_.file(name + ".crt"); }

 private:
  void make_authority(const std::string& name) {
    make_key(name);
    shell("openssl req -x509 -new -key " + key(name) + " -subj /CN=test-" + name + " -days 2 -out " +
          certificate(name));
  }
  void make_signed(const std::string& name, const std::string& authority) {
    make_key(name);
    const std::string request = directory_.file("csr");
    shell("openssl req -new -key " + key(name) + " -subj /CN=" + name + " -out " + request);
    shell("openssl x509 -req -in " + request + " -CA " + certificate(authority) + " -CAkey " +
          key(authority) + " -CAcreateserial -days 2 -out " + certificate(name));
  }
  void make_key(const std::string& name) {
    shell("openssl ecparam -name prime256v1 -genkey -noout -out " + key(name));
  }
  static void shell(const std::string& command) {
    if (std::system((command + " >/dev/null 2>&1").c_str()) != 0)
      throw std::runtime_error("failed: " + command);
  }
  ScratchDirectory directory_;
};

inline const Certificates& certificates() {
  static const Certificates all;
  return all;
}

}  // namespace weir::test
