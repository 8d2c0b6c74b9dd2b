# dw_guest(NAME SOURCES... [COMMAND]): a WebAssembly guest from C or C++ sources, as build/<preset>/guests/NAME.wasm,
# by the target guest_NAME. A reactor (handlers) unless COMMAND (a main function). Needs Debian's clang-16, lld-16,
# wasi-libc and libclang-rt-16-dev-wasm32.
find_program(DW_GUEST_CLANG clang-16 REQUIRED)
find_program(DW_GUEST_CLANGXX clang++-16 REQUIRED)
find_program(DW_GUEST_LD wasm-ld-16 REQUIRED)

set(DW_GUEST_FLAGS --target=wasm32-wasi -fuse-ld=${DW_GUEST_LD} -O2 -Wall -Wextra -ffp-contract=off
    -I${CMAKE_SOURCE_DIR}/sdk/abi -I${CMAKE_SOURCE_DIR}/sdk/c -Wl,--strip-debug)

function(dw_guest name)
  cmake_parse_arguments(ARG "COMMAND" "" "" ${ARGN})
  set(output ${CMAKE_BINARY_DIR}/guests/${name}.wasm)
  set(compiler ${DW_GUEST_CLANG} -std=c11)
  set(sources "")
  foreach(source ${ARG_UNPARSED_ARGUMENTS})
    get_filename_component(source ${source} ABSOLUTE)
    list(APPEND sources ${source})
    if(source MATCHES "\\.cc$")
      set(compiler ${DW_GUEST_CLANGXX} -std=c++20 -fno-exceptions -fno-rtti -nostdlib++)
    endif()
  endforeach()
  set(model "")
  if(NOT ARG_COMMAND)
    set(model -mexec-model=reactor)
  endif()
  file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/sdk/abi/*.h ${CMAKE_SOURCE_DIR}/sdk/c/*.h*)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/guests
    COMMAND ${compiler} ${DW_GUEST_FLAGS} ${model} -o ${output} ${sources}
    DEPENDS ${sources} ${headers}
    COMMENT "Guest ${name}.wasm"
    VERBATIM)
  add_custom_target(guest_${name} ALL DEPENDS ${output})
  set_property(GLOBAL APPEND PROPERTY DW_GUEST_TARGETS guest_${name})
endfunction()
