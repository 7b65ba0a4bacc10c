# SPDX-License-Identifier: Apache-2.0
"""Runs all of ONNX's node tests before and after jaxport.optimize; --slim: beside onnxslim."""

import argparse
import contextlib
import io
import logging
import sys
import time
from collections import Counter
from collections.abc import Iterator

import onnx

import jaxport
from optimize.judge import judge, node_cases, node_count

# onnxslim makes these smaller: comparisons of constant positions stay, because the type of their
# result is not inferred.
BEHIND = (
    "test_attention_3d_local_window_expanded",
    "test_attention_bidirectional_window_expanded",
)
# Results that are drawn anew each time.
RANDOM = ("test_bernoulli", "test_training_dropout")


def run_node_tests(every: int) -> int:
    outcomes: Counter[str] = Counter()
    failures = []
    for case in list(node_cases())[::every]:
        outcome = judge(case)
        if outcome == "differs" and case.name.startswith(RANDOM):
            outcome = "random"
        outcomes[outcome] += 1
        if outcome not in ("equal", "equal in reference", "not run", "random"):
            failures.append(f"{case.name}: {outcome}")
    print("\n".join([*failures, *(f"{count:6} {outcome}" for outcome, count in outcomes.items())]))
    return 1 if failures else 0


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        yield
    logging.disable(logging.NOTSET)


def compare(models: Iterator[tuple[str, onnx.ModelProto]]) -> int:
    """Nodes and seconds of both; 1 when onnxslim makes one of the models smaller than we do."""
    import onnxslim

    nodes: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    behind = []
    for name, model in models:
        copy = onnx.ModelProto.FromString(model.SerializeToString())
        start = time.perf_counter()
        try:
            with quiet():
                slim = onnxslim.slim(copy)
        except BaseException:  # it ends the process for some models
            continue
        middle = time.perf_counter()
        smaller = jaxport.optimize(model)
        seconds["onnxslim"] += middle - start
        seconds["jaxport"] += time.perf_counter() - middle
        counts = {"before": model, "onnxslim": slim, "jaxport": smaller}
        counted = {who: node_count(m.graph) for who, m in counts.items()}
        nodes.update(counted)
        if counted["jaxport"] > counted["onnxslim"]:
            behind.append(f"{name}: {counted}")
    print("\n".join(behind))
    print(f"nodes: {dict(nodes)}")
    print(f"time of jaxport over that of onnxslim: {seconds['jaxport'] / seconds['onnxslim']:.3f}")
    return 1 if any(not line.startswith(BEHIND) for line in behind) else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m optimize", description=__doc__)
    parser.add_argument("--every", type=int, default=1, help="take every n-th test")
    parser.add_argument("--slim", action="store_true", help="compare with onnxslim")
    parser.add_argument("models", nargs="*", help="with --slim: ONNX files instead of the tests")
    arguments = parser.parse_args()
    if not arguments.slim:
        return run_node_tests(arguments.every)
    if arguments.models:
        return compare((path, onnx.load(path)) for path in arguments.models)
    cases = list(node_cases())[:: arguments.every]
    return compare((case.name, case.model) for case in cases)


if __name__ == "__main__":
    sys.exit(main())
