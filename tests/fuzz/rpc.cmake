weir_fuzz_target(rpc_frame SOURCES rpc_frame_fuzz.cpp LINK weir_rpc)
weir_fuzz_target(rpc_json SOURCES rpc_json_fuzz.cpp LINK weir_rpc nlohmann_json::nlohmann_json)
weir_fuzz_target(rpc_server_calls
  SOURCES rpc_server_calls_fuzz.cpp rpc_frame_lines.cpp line_mutator.cpp stepped_clock.cpp LINK rpc_test_services)
weir_fuzz_target(rpc_client_replies
  SOURCES rpc_client_replies_fuzz.cpp rpc_frame_lines.cpp line_mutator.cpp stepped_clock.cpp LINK rpc_test_services)
weir_fuzz_target(rpc_http SOURCES rpc_http_fuzz.cpp LINK weir_rpc)
