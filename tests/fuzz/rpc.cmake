weir_fuzz_target(rpc_frame SOURCES rpc_frame_fuzz.cpp LINK weir_rpc)
weir_fuzz_target(rpc_json SOURCES rpc_json_fuzz.cpp ${PROJECT_SOURCE_DIR}/cli/weir/rpc_json.cpp LINK weir_rpc)
