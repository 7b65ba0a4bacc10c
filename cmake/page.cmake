# SPDX-License-Identifier: Apache-2.0
# Builds the report page: cmake -DSOURCE=web -DFOLDER=build/web-page -DOUTPUT=page.html -P page.cmake
#
# Without npm, or without a network, the package is built all the same: only the page is missing
# then, and what needs it says so (E113). An sdist brings the page along.
file(COPY ${SOURCE}/src ${SOURCE}/build.mjs ${SOURCE}/package.json ${SOURCE}/package-lock.json
     ${SOURCE}/.npmrc DESTINATION ${FOLDER})
file(REMOVE ${OUTPUT})
find_program(NPM npm)
find_program(NODE node)
set(failed "npm is not installed")
if(NPM AND NODE)
  set(lock ${FOLDER}/node_modules/.package-lock.json)
  if(${FOLDER}/package-lock.json IS_NEWER_THAN ${lock})
    execute_process(COMMAND ${NPM} ci --omit=dev --ignore-scripts --no-fund --no-audit --loglevel=error
                    WORKING_DIRECTORY ${FOLDER} RESULT_VARIABLE failed OUTPUT_QUIET)
  else()
    set(failed 0)
  endif()
  if(NOT failed)
    execute_process(COMMAND ${NODE} build.mjs ${OUTPUT} WORKING_DIRECTORY ${FOLDER}
                    RESULT_VARIABLE failed)
  endif()
endif()
if(failed AND EXISTS ${SOURCE}/dist/page.html)
  file(COPY_FILE ${SOURCE}/dist/page.html ${OUTPUT})
elseif(failed)
  message(WARNING "the report page is not built (${failed}): jaxport report writes data only")
endif()
