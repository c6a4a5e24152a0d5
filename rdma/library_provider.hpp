// RDMA for a shared library that is loaded into another program, such as the C ABIs.
//
// Such a library has no main that hands settings down, and the program's own location says nothing about
// where Weir is. So this reads WEIR_RDMA_PROVIDER and LD_LIBRARY_PATH, and looks where a program in ../bin
// beside the library would look. Threading: as load_provider().
#pragma once

#include <string>
#include <string_view>

#include "rdma/provider.hpp"

namespace weir::rdma {

// `function`: any function of the library. `choice`: "auto", "weir" or "system"; empty: WEIR_RDMA_PROVIDER
// decides. `library_dir`: as in ProviderOptions.
Result<Provider> load_provider_beside(const void* function, std::string_view choice, std::string library_dir);

}  // namespace weir::rdma
