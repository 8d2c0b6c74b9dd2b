# CMake toolchain for guests: Debian's clang-16, lld-16, wasi-libc and libclang-rt-16-dev-wasm32.
#   cmake -B build -DCMAKE_TOOLCHAIN_FILE=.../sdk/c/driftwood-toolchain.cmake
# A guest is a reactor (handlers, no main): link it with -mexec-model=reactor, as DRIFTWOOD_REACTOR does.
set(CMAKE_SYSTEM_NAME WASI)
set(CMAKE_SYSTEM_PROCESSOR wasm32)
set(DRIFTWOOD_CLANG_SUFFIX "-16" CACHE STRING "Suffix of clang and wasm-ld")
set(CMAKE_C_COMPILER clang${DRIFTWOOD_CLANG_SUFFIX})
set(CMAKE_CXX_COMPILER clang++${DRIFTWOOD_CLANG_SUFFIX})
set(CMAKE_C_COMPILER_TARGET wasm32-wasi)
set(CMAKE_CXX_COMPILER_TARGET wasm32-wasi)
find_program(DRIFTWOOD_WASM_LD wasm-ld${DRIFTWOOD_CLANG_SUFFIX} REQUIRED)
set(DRIFTWOOD_REACTOR "-mexec-model=reactor")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-fuse-ld=${DRIFTWOOD_WASM_LD} ${DRIFTWOOD_REACTOR}")
set(CMAKE_CXX_FLAGS_INIT "-fno-exceptions -fno-rtti -nostdlib++")
set(CMAKE_EXECUTABLE_SUFFIX ".wasm")
set(CMAKE_EXECUTABLE_SUFFIX_C ".wasm")  # the platform file resets the general one
set(CMAKE_EXECUTABLE_SUFFIX_CXX ".wasm")
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
include_directories(${CMAKE_CURRENT_LIST_DIR} ${CMAKE_CURRENT_LIST_DIR}/../abi)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
