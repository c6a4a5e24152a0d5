// The scripts that the server knows, by the SHA-1 of their text.
//
// A script loaded by SCRIPT LOAD stays until SCRIPT FLUSH. Of the scripts that came only with EVAL, the last
// 500 stay, so a client that writes its arguments into its scripts cannot fill the memory.
//
// Threading: the server's one thread.
#pragma once

#include <absl/container/node_hash_map.h>
#include <openssl/evp.h>

#include <functional>
#include <list>
#include <memory>
#include <string>
#include <string_view>

#include "hash/keyed.hpp"
#include "kv/scripts/shebang.hpp"

namespace weir::kv {

inline constexpr std::size_t sha1_hex_bytes = 40;
std::string sha1_hex(std::string_view text);

// The same for a text that comes in pieces.
class Sha1 {
 public:
  Sha1();
  void add(std::string_view piece);
  std::string hex();

 private:
  struct Free {
    void operator()(EVP_MD_CTX* digest) const { EVP_MD_CTX_free(digest); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> digest_;
};

struct Script {
  static constexpr int not_compiled = -2;  // LUA_NOREF

  std::string text;
  ScriptFlags flags;
  int function = not_compiled;                  // its reference in the registry of the interpreter
  bool loaded = false;                          // by SCRIPT LOAD
  std::list<const std::string*>::iterator use;  // place in of_eval_, unless loaded
};

class ScriptCache {
 public:
  static constexpr std::size_t kept_of_eval = 500;

  // Called when a compiled script is removed; its reference is no longer needed.
  std::function<void(int function)> on_gone;

  Script* find(std::string_view sha);
  Script& add(const std::string& sha, Script script);
  // A script from EVAL was used again; or SCRIPT LOAD wants it to stay.
  void used(Script& script);
  void keep(Script& script);
  void clear();
  // No script is compiled any more.
  void forget_functions();

  std::size_t size() const { return scripts_.size(); }
  std::size_t text_bytes() const { return text_bytes_; }

 private:
  absl::node_hash_map<std::string, Script, hash::Keyed, std::equal_to<>> scripts_;
  std::list<const std::string*> of_eval_;  // their hashes, least recently used first
  std::size_t text_bytes_ = 0;
};

}  // namespace weir::kv
