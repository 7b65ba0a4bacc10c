// SPDX-License-Identifier: Apache-2.0
#include <csignal>

#include "tool/command.h"

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is Error E051
  return jaxport::tool::run_jaxport(argc, argv, {});
}
