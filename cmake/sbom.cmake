# What the compiled module is made of, as a CycloneDX document in the wheel (PEP 770): the libraries
# that this build found, in the versions that it found.
set(sbom_components "")
set(sbom_references "")

# GIT_TAG of cmake/dependencies.cmake where a library was fetched, else what find_package says.
function(jaxport_version_of package result)
  set(version "${${package}_VERSION}")
  if(NOT version)
    string(TOLOWER ${package} lower)
    FetchContent_GetProperties(${package} SOURCE_DIR source)
    if(source)
      file(STRINGS ${CMAKE_SOURCE_DIR}/cmake/dependencies.cmake line REGEX "Declare\\(${package} ")
      string(REGEX REPLACE ".*GIT_TAG v?([^ ]+).*" "\\1" version "${line}")
    endif()
  endif()
  if(NOT version)
    message(FATAL_ERROR "no version of ${package} is known, which the bill of materials names")
  endif()
  set(${result} "${version}" PARENT_SCOPE)
endfunction()

function(jaxport_component name version licence home)
  string(CONCAT component
    "    {\n"
    "      \"type\": \"library\",\n"
    "      \"bom-ref\": \"pkg:github/${home}@${version}\",\n"
    "      \"name\": \"${name}\",\n"
    "      \"version\": \"${version}\",\n"
    "      \"licenses\": [{\"license\": {\"id\": \"${licence}\"}}],\n"
    "      \"purl\": \"pkg:github/${home}@${version}\"\n"
    "    }")
  list(APPEND sbom_components "${component}")
  list(APPEND sbom_references "\"pkg:github/${home}@${version}\"")
  set(sbom_components "${sbom_components}" PARENT_SCOPE)
  set(sbom_references "${sbom_references}" PARENT_SCOPE)
endfunction()

foreach(row IN ITEMS
    "fmt fmt MIT fmtlib/fmt"
    "abseil-cpp absl Apache-2.0 abseil/abseil-cpp"
    "protozero protozero BSD-2-Clause mapbox/protozero"
    "CLI11 CLI11 BSD-3-Clause CLIUtils/CLI11"
    "nlohmann-json nlohmann_json MIT nlohmann/json"
    "nanobind nanobind BSD-3-Clause wjakob/nanobind")
  separate_arguments(row)
  list(GET row 0 name)
  list(GET row 1 package)
  list(GET row 2 licence)
  list(GET row 3 home)
  jaxport_version_of(${package} version)
  jaxport_component(${name} ${version} ${licence} ${home})
endforeach()
# nanobind's static library holds this hash map.
file(STRINGS ${nanobind_DIR}/../ext/robin_map/include/tsl/robin_growth_policy.h robin
     REGEX "define TSL_RH_VERSION_[A-Z]+ [0-9]+")
string(REGEX MATCHALL "[0-9]+" robin "${robin}")
list(JOIN robin "." robin)
jaxport_component(robin-map ${robin} MIT Tessil/robin-map)

list(JOIN sbom_components ",\n" sbom_components)
list(JOIN sbom_references ", " sbom_references)
file(STRINGS ${CMAKE_SOURCE_DIR}/include/jaxport/version.h line REGEX "kVersion =")
string(REGEX REPLACE ".*\"(.*)\".*" "\\1" JAXPORT_VERSION "${line}")
configure_file(${CMAKE_SOURCE_DIR}/cmake/sbom.json.in ${CMAKE_BINARY_DIR}/jaxport.cdx.json @ONLY)
if(SKBUILD_METADATA_DIR)
  install(FILES ${CMAKE_BINARY_DIR}/jaxport.cdx.json DESTINATION ${SKBUILD_METADATA_DIR}/sboms)
endif()
