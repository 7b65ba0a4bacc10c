// SPDX-License-Identifier: Apache-2.0
#include "tool/command.h"

int main(int argc, char** argv) { return jaxport::tool::run_jaxport(argc, argv, {}); }
