# Debian's libprotozero-dev has headers only and no CMake package.
find_path(protozero_INCLUDE_DIR protozero/version.hpp)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(protozero REQUIRED_VARS protozero_INCLUDE_DIR)
if(protozero_FOUND AND NOT TARGET protozero::protozero)
  add_library(protozero::protozero INTERFACE IMPORTED GLOBAL)
  target_include_directories(protozero::protozero INTERFACE ${protozero_INCLUDE_DIR})
endif()
