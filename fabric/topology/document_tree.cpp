// The one file that includes toml++, which is slow to compile.
#include "fabric/topology/document_tree.hpp"

#include <toml++/toml.h>

#include <algorithm>

namespace weir::fabric {
namespace {

TomlValue copied(const toml::node& node) {
  TomlValue out;
  out.line = node.source().begin.line;
  out.column = node.source().begin.column;
  if (const auto* boolean = node.as_boolean()) {
    out.value = boolean->get();
  } else if (const auto* integer = node.as_integer()) {
    out.value = integer->get();
  } else if (const auto* number = node.as_floating_point()) {
    out.value = number->get();
  } else if (const auto* string = node.as_string()) {
    out.value = string->get();
  } else if (const auto* array = node.as_array()) {
    std::vector<TomlValue> values;
    values.reserve(array->size());
    for (const auto& element : *array) values.push_back(copied(element));
    out.value = std::move(values);
  } else if (const auto* table = node.as_table()) {
    std::vector<TomlMember> members;
    members.reserve(table->size());
    for (const auto& [key, value] : *table)
      members.push_back(
          {std::string(key.str()), key.source().begin.line, key.source().begin.column, copied(value)});
    // toml++ sorts by key; complaints and generated names follow the file.
    std::stable_sort(members.begin(), members.end(), [](const TomlMember& a, const TomlMember& b) {
      return std::pair(a.line, a.column) < std::pair(b.line, b.column);
    });
    out.value = std::move(members);
  }
  return out;
}

}  // namespace

bool parse_toml(std::string_view text, const Place& file, TomlValue& tree, Complaints& complaints) {
  try {
    tree = copied(toml::parse(text));
    return true;
  } catch (const toml::parse_error& error) {
    const auto& where = error.source().begin;
    complaints.add({file.file, where.line, where.column}, "not TOML: " + std::string(error.description()),
                   "see toml.io for the syntax");
    return false;
  }
}

}  // namespace weir::fabric
