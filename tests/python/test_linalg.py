# SPDX-License-Identifier: Apache-2.0
"""Linear algebra by decomposition: LAPACK's numbers and signs, over any batch."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import jax.scipy.linalg as sl
import numpy as np
import pytest
from jax.lax import linalg as ll

import jaxport
from jaxport import runtime
from support.cases import case, check, f32, f64, parity


def row(name, fn, *shapes, also=(), tolerance="network"):
    """fn of matrices with these shapes in f32, in f64, and at other shapes."""
    return case(
        name,
        fn,
        [f32(*shape) for shape in shapes],
        [[f64(*shape) for shape in shapes], *([f32(*s) for s in other] for other in also)],
        tolerance=tolerance,
    )


def transposed(a):
    return jnp.swapaxes(a, -1, -2)


def positive(a):
    """A well-conditioned positive definite matrix."""
    return a @ transposed(a) + 4 * jnp.eye(a.shape[-1], dtype=a.dtype)


def symmetric(a):
    return a + transposed(a)


def hermitian(a, b):
    return jax.lax.complex(symmetric(a), b - transposed(b)) / 4


def regular(a):
    return a + 6 * jnp.eye(a.shape[-1], dtype=a.dtype)


def solved(**options):
    return lambda a, b: ll.triangular_solve(regular(a), b, **options)


def cholesky_alone(a):
    return ll.cholesky_p.bind(a + jnp.triu(a, 1))


SQUARE = [[("B", 3, 3)], [(2, 1, 4, 4)], [(1, 1)]]
TALL_AND_WIDE = [[(2, 6, 3)], [(3, 6)], [("B", 3, 2)]]

SYSTEMS = [
    row("cholesky", lambda a: jnp.linalg.cholesky(positive(a)), (5, 5), also=SQUARE),
    row("cholesky of any size", lambda a: jnp.linalg.cholesky(positive(a)), ("N", "N")),
    row("cholesky, upper triangle as it is", lambda a: cholesky_alone(positive(a)), (4, 4)),
    row("cholesky of nothing", lambda a: jnp.linalg.cholesky(a), (3, 0, 0)),
    row("cholesky, upper", lambda a: jnp.linalg.cholesky(positive(a), upper=True), (4, 4)),
    row("cholesky of an indefinite matrix", lambda a: jnp.linalg.cholesky(symmetric(a)), (4, 4)),
    row("cho_solve", lambda a, b: sl.cho_solve(sl.cho_factor(positive(a)), b), (4, 4), (4, 2)),
    row("lower", solved(left_side=True, lower=True), (4, 4), (4, 2)),
    row("upper", solved(left_side=True, lower=False), (2, 4, 4), (2, 4, 3)),
    row("right", solved(left_side=False, lower=True), (4, 4), (2, 4)),
    row("transposed", solved(left_side=True, lower=True, transpose_a=True), (4, 4), (4, 2)),
    row(
        "right, transposed, unit diagonal",
        solved(left_side=False, lower=False, transpose_a=True, unit_diagonal=True),
        ("B", 4, 4),
        ("B", 2, 4),
    ),
    row("lu", ll.lu, (5, 5), also=[*TALL_AND_WIDE, *SQUARE]),
    row("lu of a singular matrix", lambda a: ll.lu(a * jnp.arange(4)), (4, 4)),
    row("lu_solve", lambda a, b: sl.lu_solve(sl.lu_factor(regular(a)), b), (4, 4), (4, 2)),
    row("solve", lambda a, b: jnp.linalg.solve(regular(a), b), ("B", 4, 4), ("B", 4, 2)),
    row("inverse", lambda a: jnp.linalg.inv(regular(a)), (4, 4), also=SQUARE),
    row("det", jnp.linalg.det, (4, 4), also=SQUARE),
    row("slogdet", jnp.linalg.slogdet, (4, 4), also=SQUARE),
    row(
        "gradient of logdet",
        jax.grad(lambda a: jnp.linalg.slogdet(regular(a))[1].sum()),
        (4, 4),
    ),
    row("tridiagonal_solve", ll.tridiagonal_solve, (5,), (5,), (5,), (5, 2)),
    row("tridiagonal_solve of many", ll.tridiagonal_solve, (3, 5), (3, 5), (3, 5), (3, 5, 2)),
    row("cholesky_update", lambda a, x: ll.cholesky_update(positive(a), x), (4, 4), (4,)),
    row(
        "symmetric_product",
        lambda a, c: ll.symmetric_product(a, c, alpha=2.0, beta=0.5),
        (4, 3),
        (4, 4),
    ),
]

REFLECTIONS = [
    row("qr", jnp.linalg.qr, (4, 4), also=TALL_AND_WIDE),
    row("complete qr", lambda a: jnp.linalg.qr(a, mode="complete"), (5, 3), also=[[(3, 5)]]),
    row("r alone", lambda a: jnp.linalg.qr(a, mode="r"), (5, 3)),
    row("qr with pivots", lambda a: sl.qr(a, pivoting=True), (4, 3), also=[[(3, 4)], [(2, 3, 3)]]),
    row("qr of a zero column", lambda a: jnp.linalg.qr(a * jnp.arange(3)), (4, 3)),
    row("qr of large numbers", lambda a: jnp.linalg.qr(a * 1e25), (4, 3)),
    row("lstsq", lambda a, b: jnp.linalg.lstsq(a, b)[0], (5, 3), (5, 2)),
    row("hessenberg", ll.hessenberg, (5, 5), also=[[(2, 4, 4)]]),
    row("tridiagonal", lambda a: ll.tridiagonal(symmetric(a), lower=True), (5, 5)),
    row("tridiagonal, upper", lambda a: ll.tridiagonal(symmetric(a), lower=False), (5, 5)),
    row("householder_product", lambda a, t: ll.householder_product(a, t / 9), (5, 3), (2,)),
    row("no reflector", lambda a, t: ll.householder_product(a, t), (3, 3), (0,)),
]


def mild(a):
    """A matrix of any size that is far from being singular."""
    return a / a.shape[-1] + 2 * jnp.eye(a.shape[-1], dtype=a.dtype)


def triangle(lower, **options):
    """A triangular system, solved with a as it is: what is in the other triangle is not read."""
    options = {"left_side": True, "lower": lower, **options}
    return lambda a, b: ll.triangular_solve(mild(a), b, **options)


def squares(*sizes, batch=()):
    return [[(*batch, size, size)] for size in sizes]


def systems(*sizes):
    return [[(size, size), (size, 2)] for size in sizes]


# Each form of each size: formulas, without a loop, by doubling, by blocks, in place.
BY_SIZE = [
    row("lower, by size", triangle(True), (2, 2), (2, 3), also=systems(1, 3, 5, 16, 33, 48)),
    row("upper, by size", triangle(False), (2, 2), (2, 3), also=systems(1, 3, 5, 16, 33, 48)),
    row(
        "lower, unit diagonal, by size",
        triangle(True, unit_diagonal=True),
        (7, 7),
        (7, 2),
        also=[[("B", 2, 2), ("B", 2, 2)], [("B", 8, 8), ("B", 8, 3)], [(2, 40, 40), (2, 40, 1)]],
    ),
    row(
        "cholesky by size", lambda a: jnp.linalg.cholesky(positive(a)), (2, 2), also=squares(3, 12)
    ),
    row("lu by size", ll.lu, (2, 2), also=[*squares(1, 3, 12), *squares(2, 3, batch=["B"])]),
    row("inverse by size", lambda a: jnp.linalg.inv(mild(a)), (2, 2), also=squares(1, 3, 8, 20)),
    row("inverse of many", lambda a: jnp.linalg.inv(mild(a)), ("B", 2, 2), also=[[("B", 5, 5)]]),
    row("vmap of solve", jax.vmap(lambda a, b: jnp.linalg.solve(mild(a), b)), (4, 2, 2), (4, 2)),
    row(
        "solve by size", lambda a, b: jnp.linalg.solve(mild(a), b), (2, 2), (2,), also=systems(3, 9)
    ),
    row(
        "gradient of an inverse",
        jax.grad(lambda a: jnp.sin(jnp.linalg.inv(mild(a))).sum()),
        (2, 2),
        also=squares(1, 3, 6),
    ),
    row("det by size", jnp.linalg.det, (2, 2), also=[*squares(1, 3, 5), *squares(4, batch=["B"])]),
    row("qr by size", jnp.linalg.qr, (2, 2), also=[[(1, 1)], [(2, 3)], [(3, 2)], [(12, 12)]]),
    row("hessenberg by size", ll.hessenberg, (2, 2), also=squares(1, 3)),
    row("tridiagonal of two", lambda a: ll.tridiagonal(symmetric(a), lower=False), (2, 2)),
]


def spectrum(a):
    """What of an eigendecomposition does not depend on the signs of the vectors."""
    vectors, values = ll.eigh(symmetric(a))
    return values, (vectors * values[..., None, :]) @ transposed(vectors)


def singular(full_matrices):
    def fn(a):
        u, s, vh = jnp.linalg.svd(a, full_matrices=full_matrices)
        count = s.shape[-1]
        gram = transposed(u) @ u, vh @ transposed(vh)
        return s, (u[..., :count] * s[..., None, :]) @ vh[..., :count, :], *gram

    return fn


ROTATIONS = [
    row("eigh", spectrum, (5, 5), also=SQUARE),
    row("eigh of a diagonal", lambda a: spectrum(jnp.diag(a)), (5,)),
    row("eigvalsh", lambda a: jnp.linalg.eigvalsh(a, UPLO="U"), (6, 6)),
    row("eigh by size", spectrum, (2, 2), also=[*squares(9, 12), *squares(2, 3, batch=["B"])]),
    row("equal eigenvalues", lambda a: spectrum(a[0, 0] * jnp.eye(2)), (2, 2)),
    row("pairs of equal eigenvalues", lambda a: spectrum(jnp.kron(jnp.eye(3), a)), (2, 2)),
    row("large numbers", lambda a: spectrum(a * 1e20)[0], (2, 2), also=squares(5)),
    row("small numbers", lambda a: spectrum(a * 1e-20)[0], (2, 2), also=squares(5)),
    row(
        "gradient of eigenvalues",
        jax.grad(lambda a: jnp.sin(jnp.linalg.eigvalsh(symmetric(a) + jnp.diag(a[0]))).sum()),
        (2, 2),
    ),
    row(
        "singular values of two columns",
        lambda a: jnp.linalg.svd(a, compute_uv=False),
        (2, 2),
        also=[[("B", 3, 2)], [(2, 5)], [("B", 2, 2)]],
    ),
    row(
        "singular values of equal columns",
        lambda a: jnp.linalg.svd(jnp.stack([a, a], -1), compute_uv=False),
        (2,),
        also=[[(4,)]],
    ),
    row("svd by size", singular(True), (2, 2), also=[[(1, 1)], [(9, 9)], [(12, 5)], [("B", 2, 2)]]),
    row("svd of zeros", lambda a: singular(True)(a * 0), (3, 3), also=[[(1, 1)], [(2, 2)]]),
    row("svd", singular(False), (4, 4), also=TALL_AND_WIDE),
    row("full svd", singular(True), (5, 3), also=[[(3, 5)], [(2, 2, 4)]]),
    row("svd of rank one", singular(True), (4, 1), also=[[(1, 4)]]),
    row("svd of a singular matrix", lambda a: singular(True)(a * jnp.arange(3)), (4, 3)),
    row("singular values", lambda a: jnp.linalg.svd(a, compute_uv=False), (4, 3)),
    row("pinv", jnp.linalg.pinv, (5, 3)),
    row("norm 2", lambda a: jnp.linalg.norm(a, 2), (4, 3)),
    row("rank", jnp.linalg.matrix_rank, (4, 3)),
    row("condition", lambda a: jnp.linalg.cond(regular(a)), (4, 4)),
    row("expm", lambda a: sl.expm(a / 3), (3, 3), also=[[(2, 2, 2)]]),
    row("matrix_power", lambda a: jnp.linalg.matrix_power(regular(a) / 8, -2), (3, 3)),
]


def complex_square(a, b):
    return jax.lax.complex(a, b)


def turned(a):
    """Blocks whose eigenvalues are conjugate: the order of a pair is LAPACK's."""
    a, b = jnp.abs(a) + 1
    return jnp.array([[a, b, 1, 2], [-b, a, 3, 1], [0, 0, -a, b], [0, 0, -a, -a]])


def eigenvalues(a):
    """What of eigenvalues does not depend on their order, and how far vectors are from being so."""
    values, left, right = ll.eig(a, compute_left_eigenvectors=True)
    off_right = jnp.abs(a @ right - right * values[..., None, :])
    off_left = jnp.abs(adjoint(left) @ a - values[..., :, None] * adjoint(left))
    return jnp.sort(values.real), jnp.sort(jnp.abs(values.imag)), 1 + off_right, 1 + off_left


def adjoint(a):
    return jnp.conj(transposed(a))


def schur_form(a, b):
    form, vectors = sl.schur(complex_square(a, b))
    return jnp.abs(vectors @ form @ adjoint(vectors)), jnp.abs(jnp.tril(form, -1))


def real_schur_form(a):
    form, vectors = ll.schur(a)
    parts = jnp.sort(jnp.diagonal(form, axis1=-2, axis2=-1))  # the real parts of the eigenvalues
    return parts, vectors @ form @ transposed(vectors), jnp.tril(form, -2)


GENERAL = [
    row("eig", eigenvalues, (5, 5), also=[[(2, 3, 3)], [(1, 1)]]),
    row("conjugate eigenvalues", lambda a: ll.eig(turned(a))[0], (2,)),
    row("eig of complex numbers", lambda a, b: eigenvalues(complex_square(a, b)), (4, 4), (4, 4)),
    row("eigenvalues of two", lambda a: jnp.linalg.eigvals(a).imag, (2, 2), also=[[("B", 2, 2)]]),
    row("eigenvalues of two zeros", lambda a: jnp.linalg.eigvals(a * 0).real, (2, 2)),
    row(
        "complex eigenvalues of two",
        lambda a, b: jnp.sort(jnp.linalg.eigvals(complex_square(a, b)).imag),
        (2, 2),
        (2, 2),
        also=[[("B", 2, 2), ("B", 2, 2)]],
    ),
    row("eig of a rotation", lambda a: eigenvalues(jnp.roll(jnp.diag(a), 1, 0)), (4,)),
    row("roots", lambda p: jnp.sort(jnp.roots(p, strip_zeros=False).real), (4,)),
    row("schur", schur_form, (4, 4), (4, 4)),
    row("real schur", real_schur_form, (5, 5), also=[[(2, 6, 6)], [(1, 1)], [(2, 2)]]),
    row(
        "real schur of a rotation", lambda a: real_schur_form(jnp.roll(jnp.diag(a), 1, 0))[1], (5,)
    ),
    row("square root of a matrix", lambda a: sl.sqrtm(positive(a)).real, (4, 4)),
    row(
        "complex systems",
        lambda a, b: jnp.abs(jnp.linalg.solve(regular(complex_square(a, b)), b)),
        (4, 4),
        (4, 4),
    ),
    row("complex qr", lambda a, b: jnp.linalg.qr(complex_square(a, b))[1].real, (4, 3), (4, 3)),
    row(
        "complex cholesky",
        lambda a, b: jnp.linalg.cholesky(hermitian(a, b) + 9 * jnp.eye(4)).imag,
        (4, 4),
        (4, 4),
    ),
    row("complex eigh", lambda a, b: ll.eigh(hermitian(a, b))[1], (4, 4), (4, 4)),
    row(
        "complex singular values",
        lambda a, b: jnp.linalg.svd(complex_square(a, b), compute_uv=False),
        (4, 3),
        (4, 3),
    ),
]


def with_zero(a):
    return a.at[..., 1, :].set(a[..., 0, :])


def with_nan(fn):
    """fn of a matrix with a NaN in a corner, which all results see."""
    return lambda a: jax.tree.map(jnp.abs, fn(a.at[..., -1, 0].set(jnp.nan)))


# What has no numbers: rows that are equal, pivots that are zero, NaN.
WITHOUT_NUMBERS = [
    row("inverse of equal rows", lambda a: jnp.linalg.inv(jnp.ones_like(a)), (2, 2)),
    row("det of equal rows", lambda a: jnp.linalg.det(with_zero(a)), (2, 2), also=squares(4)),
    row("cholesky of a negative number", lambda a: jnp.linalg.cholesky(-positive(a)), (1, 1)),
    row(
        "a zero pivot stays in its rows",
        lambda a, b: ll.triangular_solve(
            jnp.eye(a.shape[-1], dtype=a.dtype).at[1, 1].set(0), b, left_side=True, lower=True
        ),
        (2, 2),
        (2, 1),
        also=systems(3, 8, 40),
    ),
    row("eigh of NaN", with_nan(ll.eigh), (2, 2), also=squares(5)),
    row("svd of NaN", with_nan(jnp.linalg.svd), (2, 2), also=squares(1, 4)),
    row(
        "singular values of NaN", with_nan(lambda a: jnp.linalg.svd(a)[1]), (2, 2), also=[[(3, 2)]]
    ),
    row("inverse of NaN", with_nan(jnp.linalg.inv), (2, 2), also=squares(1, 3, 5)),
    row(
        "cholesky of NaN",
        lambda a: jnp.isnan(jnp.linalg.cholesky(a.at[-1, 0].set(jnp.nan))).any(),
        (2, 2),
        also=squares(1, 5),
    ),
]


@parity(GENERAL + SYSTEMS + REFLECTIONS + BY_SIZE + ROTATIONS + WITHOUT_NUMBERS)
def test_numbers_are_jax_s(case, capfd):
    check(case, capfd)


def large_below(n, size):
    return np.eye(n, dtype=np.float32) + np.float32(size) * np.eye(n, k=-1, dtype=np.float32)


def small_and_large():
    a = 1e25 * np.eye(4, dtype=np.float32)
    a[1, 0] = 1
    return a, np.array([[1e38], [0], [0], [0]], np.float32)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (large_below(4, 1e4), large_below(4, 1e4) @ np.ones((4, 1), np.float32)),
        (large_below(48, 1e4), large_below(48, 1e4) @ np.ones((48, 1), np.float32)),
        small_and_large(),
    ],
    ids=["large inverse", "of blocks", "inverse beyond f32"],
)
def test_triangular_systems_are_solved_where_their_inverse_loses_digits(a, b):
    def fn(a, b):
        return ll.triangular_solve(a, b, left_side=True, lower=True)

    model = jaxport.to_onnx(fn, [a.shape, b.shape])
    (x,) = runtime.run(runtime.open_session(model), [a, b]).values()
    np.testing.assert_allclose(x, fn(a, b), rtol=1e-6)


def test_cholesky_reads_the_real_diagonal_and_keeps_an_infinite_one():
    def fn(re, im):
        factor = ll.cholesky(jax.lax.complex(re, im), symmetrize_input=False)
        return factor.real, factor.imag

    arrays = [np.array(x, np.float32) for x in ([[4, 0], [2, 9]], [[1, 0], [0, 1]])]
    model = jaxport.to_onnx(fn, [(2, 2), (2, 2)])
    have = runtime.run(runtime.open_session(model), arrays).values()
    for part, wanted in zip(have, fn(*arrays), strict=True):
        np.testing.assert_allclose(part, wanted, rtol=1e-6)
    a = np.array([[np.inf, 1], [1, 4]], np.float32)
    model = jaxport.to_onnx(ll.cholesky, [(2, 2)])
    (factor,) = runtime.run(runtime.open_session(model), [a]).values()
    np.testing.assert_array_equal(factor, ll.cholesky(a))


def test_eigenvalues_by_index():
    """JAX has them on other devices only."""
    a = np.random.default_rng(0).normal(size=(5, 5)).astype(np.float32)
    a += a.T

    def some(a):
        return ll.eigh(a, subset_by_index=(1, 3))

    model = jaxport.to_onnx(some, [a.shape])
    vectors, values = runtime.run(runtime.open_session(model), [a]).values()
    np.testing.assert_allclose(values, np.linalg.eigvalsh(a)[1:3], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(a @ vectors, vectors * values, rtol=1e-4, atol=1e-5)
