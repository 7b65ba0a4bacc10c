// SPDX-License-Identifier: Apache-2.0
// Functions that <cmath> lacks, to a few ulps of double away from their roots.
#pragma once

namespace jaxport::eval {

double erf_inv(double x);  // infinite at -1 and 1, NaN outside
double digamma(double x);  // NaN at 0, -1, -2, … and -inf, as XLA gives

}  // namespace jaxport::eval
