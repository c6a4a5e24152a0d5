// RDMA for a shared library that is loaded into somebody else's program, such as the C ABIs.
//
// Such a library has no main that hands settings down, and the program's own place says nothing of where Weir
// lies. So this reads WEIR_RDMA_PROVIDER and LD_LIBRARY_PATH, and looks as a program in ../bin beside the
// library would. Threading: as load_provider().
#pragma once

#include <string>
#include <string_view>

#include "rdma/provider.hpp"

namespace weir::rdma {

// `function`: one of the library's own. `choice`: "auto", "weir" or "system"; empty: as WEIR_RDMA_PROVIDER
// says. `library_dir`: as in ProviderOptions.
Result<Provider> load_provider_beside(const void* function, std::string_view choice, std::string library_dir);

}  // namespace weir::rdma
