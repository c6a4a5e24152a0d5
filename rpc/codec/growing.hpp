// Argument lists whose last arguments may be missing, because the caller does not know them or left them out.
#pragma once

#include <cstddef>
#include <string>
#include <tuple>
#include <utility>

#include "rpc/codec/codec.hpp"

namespace weir::rpc {

// A tuple whose elements from `Required` on keep their values if none arrive for them.
template <class T, std::size_t Required>
struct Growing {
  T& values;
};

template <class T, std::size_t Required>
struct Wire<Growing<T, Required>> {
  static void write(MsgpackWriter& to, const Growing<T, Required>& value) { write_value(to, value.values); }
  static bool read(MsgpackReader& from, Growing<T, Required>& value) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      std::size_t elements = 0;
      if (!from.array(elements) || !from.enter()) return false;
      if (elements < Required || elements > sizeof...(I))
        return from.fail("expected an array of " + std::to_string(Required) + " to " +
                         std::to_string(sizeof...(I)) + " elements, found " + std::to_string(elements));
      if (!(... && (I >= elements || read_value(from, std::get<I>(value.values)) ||
                    from.inside("element " + std::to_string(I)))))
        return false;
      from.leave();
      return true;
    }(std::make_index_sequence<std::tuple_size_v<T>>());
  }
};

}  // namespace weir::rpc
