# The Rust bridge (bridge/): built outside the tree by tools/build_bridge.sh, cached by content.
if(NOT DW_BRIDGE_DIR)
  message(STATUS "Building the bridge (minutes the first time, cached afterwards)")
  execute_process(COMMAND ${CMAKE_SOURCE_DIR}/tools/build_bridge.sh
                  OUTPUT_VARIABLE bridge_output OUTPUT_STRIP_TRAILING_WHITESPACE
                  RESULT_VARIABLE bridge_result)
  if(NOT bridge_result EQUAL 0)
    message(FATAL_ERROR "tools/build_bridge.sh failed; its messages above say why")
  endif()
  string(REGEX REPLACE ".*\n" "" DW_BRIDGE_DIR "${bridge_output}")
endif()
add_library(dw_bridge STATIC IMPORTED GLOBAL)
set_target_properties(dw_bridge PROPERTIES
  IMPORTED_LOCATION ${DW_BRIDGE_DIR}/lib/libdriftwood_bridge.a
  INTERFACE_INCLUDE_DIRECTORIES ${DW_BRIDGE_DIR}/include
  INTERFACE_LINK_LIBRARIES "Threads::Threads;${CMAKE_DL_LIBS};m")
