#include "kv/scripts/script_cache.hpp"

#include <openssl/sha.h>

#include <array>
#include <new>

namespace weir::kv {

namespace {

using Digest = std::array<unsigned char, SHA_DIGEST_LENGTH>;

std::string in_hex(const Digest& digest) {
  std::string hex;
  hex.reserve(2 * digest.size());
  for (const unsigned char byte : digest) {
    hex += "0123456789abcdef"[byte >> 4];
    hex += "0123456789abcdef"[byte & 15];
  }
  return hex;
}

}  // namespace

std::string sha1_hex(std::string_view text) {
  Digest digest;
  SHA1(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return in_hex(digest);
}

Sha1::Sha1() : digest_(EVP_MD_CTX_new()) {
  if (digest_ == nullptr || EVP_DigestInit_ex(digest_.get(), EVP_sha1(), nullptr) != 1)
    throw std::bad_alloc();
}

void Sha1::add(std::string_view piece) { EVP_DigestUpdate(digest_.get(), piece.data(), piece.size()); }

std::string Sha1::hex() {
  Digest digest{};
  EVP_DigestFinal_ex(digest_.get(), digest.data(), nullptr);
  return in_hex(digest);
}

Script* ScriptCache::find(std::string_view sha) {
  const auto it = scripts_.find(sha);
  return it == scripts_.end() ? nullptr : &it->second;
}

Script& ScriptCache::add(const std::string& sha, Script script) {
  const auto it = scripts_.emplace(sha, std::move(script)).first;
  text_bytes_ += it->second.text.size();
  if (it->second.loaded) return it->second;
  it->second.use = of_eval_.insert(of_eval_.end(), &it->first);
  if (of_eval_.size() > kept_of_eval) {
    const auto oldest = scripts_.find(*of_eval_.front());
    of_eval_.pop_front();
    text_bytes_ -= oldest->second.text.size();
    if (oldest->second.function != Script::not_compiled) on_gone(oldest->second.function);
    scripts_.erase(oldest);
  }
  return it->second;
}

void ScriptCache::used(Script& script) {
  if (!script.loaded) of_eval_.splice(of_eval_.end(), of_eval_, script.use);
}

void ScriptCache::keep(Script& script) {
  if (script.loaded) return;
  of_eval_.erase(script.use);
  script.loaded = true;
}

void ScriptCache::clear() {
  of_eval_.clear();
  scripts_.clear();
  text_bytes_ = 0;
}

void ScriptCache::forget_functions() {
  for (auto& [sha, script] : scripts_) script.function = Script::not_compiled;
}

}  // namespace weir::kv
