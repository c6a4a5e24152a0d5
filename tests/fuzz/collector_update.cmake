find_package(nlohmann_json REQUIRED)
weir_fuzz_target(collector_update SOURCES collector_update_fuzz.cpp ${PROJECT_SOURCE_DIR}/cli/weir/network/collector_store.cpp
                 LINK weir_metrics fmt::fmt nlohmann_json::nlohmann_json)
target_include_directories(collector_update PRIVATE ${PROJECT_SOURCE_DIR})
