# Installed packages first (Debian, Homebrew, vcpkg, …), sources from their homes otherwise.
include(FetchContent)
list(APPEND CMAKE_MODULE_PATH ${CMAKE_CURRENT_LIST_DIR})

FetchContent_Declare(absl GIT_REPOSITORY https://github.com/abseil/abseil-cpp GIT_TAG 20240722.0 FIND_PACKAGE_ARGS)
FetchContent_Declare(fmt GIT_REPOSITORY https://github.com/fmtlib/fmt GIT_TAG 10.2.1 FIND_PACKAGE_ARGS 9)
FetchContent_Declare(protozero GIT_REPOSITORY https://github.com/mapbox/protozero GIT_TAG v1.7.1 FIND_PACKAGE_ARGS)
FetchContent_Declare(CLI11 GIT_REPOSITORY https://github.com/CLIUtils/CLI11 GIT_TAG v2.4.2 FIND_PACKAGE_ARGS 2.1)
FetchContent_Declare(nlohmann_json GIT_REPOSITORY https://github.com/nlohmann/json GIT_TAG v3.11.3 FIND_PACKAGE_ARGS 3.11)
FetchContent_Declare(GTest GIT_REPOSITORY https://github.com/google/googletest GIT_TAG v1.14.0 FIND_PACKAGE_ARGS 1.12)
FetchContent_Declare(benchmark GIT_REPOSITORY https://github.com/google/benchmark GIT_TAG v1.8.5 FIND_PACKAGE_ARGS 1.7)

# The tests and install rules of a dependency are not ours.
set(BUILD_TESTING OFF)
FetchContent_MakeAvailable(absl fmt protozero CLI11 nlohmann_json)
if(JAXPORT_TESTS)
  FetchContent_MakeAvailable(GTest)
endif()
if(JAXPORT_BENCH)
  FetchContent_MakeAvailable(benchmark)
endif()

# protozero is header-only; its own build gives no target with a namespace.
if(NOT TARGET protozero::protozero)
  add_library(protozero_headers INTERFACE)
  target_include_directories(protozero_headers SYSTEM INTERFACE ${protozero_SOURCE_DIR}/include)
  add_library(protozero::protozero ALIAS protozero_headers)
endif()

# Distributions have fmt as a shared library, which a wheel would need from the system: its source is compiled
# once instead. From version 11 on it has more parts than fmt.cpp names, and stays in headers.
get_target_property(fmt_kind fmt::fmt TYPE)
if(NOT fmt_kind STREQUAL SHARED_LIBRARY)
  get_target_property(fmt_target fmt::fmt ALIASED_TARGET)  # of a fetched one, which is an alias itself
  if(NOT fmt_target)
    set(fmt_target fmt::fmt)
  endif()
  add_library(jaxport::fmt ALIAS ${fmt_target})
elseif(fmt_VERSION VERSION_LESS 11)
  add_library(jaxport_fmt STATIC cmake/fmt.cpp)
  target_include_directories(jaxport_fmt SYSTEM PUBLIC $<TARGET_PROPERTY:fmt::fmt,INTERFACE_INCLUDE_DIRECTORIES>)
  target_compile_features(jaxport_fmt PUBLIC cxx_std_20)
  set_target_properties(jaxport_fmt PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
  add_library(jaxport::fmt ALIAS jaxport_fmt)
else()
  add_library(jaxport::fmt ALIAS fmt::fmt-header-only)
endif()
