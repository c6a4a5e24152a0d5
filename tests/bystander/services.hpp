// The functions of these tests' RPC server. Its program defines them; clients only name them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weir::bystander {

inline constexpr char password[] = "open-sesame";

void ping();
std::string echo(std::string text);
std::uint64_t count(std::vector<std::string> texts);
// Keeps the text for this key, and gives it back.
void put(std::string key, std::string text);
std::string get(std::string key);

}  // namespace weir::bystander
