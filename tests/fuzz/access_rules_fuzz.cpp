// Parses files of users. An accepted file must print as a file that is accepted again, prints the same text,
// and allows the same commands.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "kv/acl/permission.hpp"
#include "kv/acl/users.hpp"

namespace {

using namespace weir::kv;

std::string text_of(const std::vector<acl::User>& users) {
  std::string text;
  for (const acl::User& user : users) text += "user " + user.name() + ' ' + user.text() + '\n';
  return text;
}

bool same_commands(const acl::User& a, const acl::User& b) {
  if (a.selectors().size() != b.selectors().size()) return false;
  for (std::size_t i = 0; i < a.selectors().size(); ++i) {
    for (const Command* command : all_commands()) {
      if (a.selectors()[i].allows(*command, {}) != b.selectors()[i].allows(*command, {})) return false;
      for (const Command& sub : command->subcommands) {
        if (a.selectors()[i].allows(sub, {}) != b.selectors()[i].allows(sub, {})) return false;
      }
    }
  }
  return true;
}

void ask(const acl::User& user) {
  const Argument words[] = {
      {"mset", nullptr}, {"a", nullptr}, {"1", nullptr}, {"b", nullptr}, {"2", nullptr}};
  const bool denied = acl::denial(user, *find_command("mset"), words).has_value();
  if (user.may_do_everything() && denied) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto users = acl::Users::parse({reinterpret_cast<const char*>(data), size}, "file", {});
  if (!users) return 0;
  const std::string text = text_of(*users);
  const auto again = acl::Users::parse(text, "file", {});
  if (!again || text_of(*again) != text) std::abort();
  for (std::size_t i = 0; i < users->size(); ++i) {
    ask((*users)[i]);
    if (!same_commands((*users)[i], (*again)[i])) std::abort();
  }
  return 0;
}
