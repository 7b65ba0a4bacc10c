# SPDX-License-Identifier: Apache-2.0
"""Differential equations, linear and nonlinear systems, integrals, optimisation."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ecosystem.table import Made, program


def _oscillator(t, y, args):
    return jnp.stack([y[1], -args * y[0] - 0.1 * y[1]])


def _solution(solver, adjoint=None, controller=None):
    import diffrax

    def solve(y0, stiffness):
        options = {} if adjoint is None else {"adjoint": adjoint}
        return diffrax.diffeqsolve(
            diffrax.ODETerm(_oscillator),
            solver,
            t0=0.0,
            t1=2.0,
            dt0=0.1,
            y0=y0,
            args=stiffness,
            saveat=diffrax.SaveAt(ts=jnp.linspace(0.0, 2.0, 5)),
            stepsize_controller=controller or diffrax.ConstantStepSize(),
            **options,
        ).ys

    return solve


_STATE = (jnp.array([1.0, 0.5]), jnp.float32(2.0))


@program("diffrax", sample=True)
def tsit5_with_a_pid_controller() -> Made:
    import diffrax

    return _solution(diffrax.Tsit5(), None, diffrax.PIDController(1e-3, 1e-4)), _STATE


@program("diffrax")
def dopri5_of_constant_steps() -> Made:
    import diffrax

    return _solution(diffrax.Dopri5()), _STATE


@program("diffrax")
def direct_adjoint_and_its_gradient() -> Made:
    import diffrax

    solve = _solution(diffrax.Heun(), diffrax.DirectAdjoint())
    return jax.grad(lambda y, k: jnp.sum(solve(y, k) ** 2)), _STATE


@program("diffrax")
def gradient_through_the_default_adjoint() -> Made:
    import diffrax

    solve = _solution(diffrax.Tsit5())
    return jax.grad(lambda y, k: jnp.sum(solve(y, k) ** 2)), _STATE


@program("diffrax")
def forward_mode() -> Made:
    import diffrax

    solve = _solution(diffrax.Tsit5(), diffrax.ForwardMode())
    return lambda y, k: jax.jvp(lambda k: solve(y, k), (k,), (jnp.ones_like(k),)), _STATE


@program("diffrax")
def implicit_kvaerno3() -> Made:
    import diffrax

    return _solution(diffrax.Kvaerno3(), None, diffrax.PIDController(1e-3, 1e-4)), _STATE


@program("diffrax")
def batch_of_neural_odes() -> Made:
    import diffrax
    import equinox as eqx

    field = eqx.nn.MLP(3, 3, 16, 2, key=jax.random.key(0))

    def solve(y0):
        term = diffrax.ODETerm(lambda t, y, args: field(y))
        return diffrax.diffeqsolve(term, diffrax.Tsit5(), 0.0, 1.0, 0.1, y0).ys[0]

    return jax.vmap(solve), [jax.random.normal(jax.random.key(1), (4, 3))]


@program("diffrax")
def stochastic_equation_on_a_brownian_tree() -> Made:
    import diffrax

    def solve(key, y0):
        path = diffrax.VirtualBrownianTree(0.0, 1.0, tol=1e-2, shape=(2,), key=key)
        terms = diffrax.MultiTerm(
            diffrax.ODETerm(lambda t, y, args: -y),
            diffrax.ControlTerm(lambda t, y, args: 0.1 * jnp.eye(2), path),
        )
        return diffrax.diffeqsolve(terms, diffrax.Heun(), 0.0, 1.0, 0.1, y0).ys

    return solve, [jax.random.key(0), jnp.array([1.0, 0.5])]


@program("diffrax")
def event_that_ends_the_solve() -> Made:
    import diffrax
    import optimistix

    def solve(y0):
        fell = diffrax.Event(lambda t, y, args, **_: y[0], optimistix.Newton(1e-4, 1e-4))
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, y, args: jnp.stack([y[1], -9.8])),
            diffrax.Tsit5(),
            0.0,
            5.0,
            0.05,
            y0,
            event=fell,
        )
        return solution.ts, solution.ys

    return solve, [jnp.array([1.0, 0.5])]


@program("diffrax")
def backsolve_adjoint() -> Made:
    import diffrax

    def loss(y0, stiffness):
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(_oscillator),
            diffrax.Tsit5(),
            0.0,
            1.0,
            0.1,
            y0,
            args=stiffness,
            adjoint=diffrax.BacksolveAdjoint(),
        )
        return jnp.sum(solution.ys**2)

    return jax.grad(loss, (0, 1)), _STATE


@program("diffrax")
def dense_output() -> Made:
    import diffrax

    def solve(y0, at):
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, y, args: -y),
            diffrax.Dopri5(),
            0.0,
            1.0,
            0.1,
            y0,
            saveat=diffrax.SaveAt(dense=True),
            max_steps=32,
        )
        return jax.vmap(solution.evaluate)(at)

    return solve, [jnp.array([1.0, 0.5]), jnp.array([0.05, 0.5, 0.93])]


def _residual(y, args):
    return jnp.stack([y[0] ** 2 + y[1] - args, jnp.sin(y[0]) + 2 * y[1]])


@program("optimistix", sample=True)
def root_by_newton() -> Made:
    import optimistix

    def root(y0, target):
        solver = optimistix.Newton(rtol=1e-5, atol=1e-6)
        return optimistix.root_find(_residual, solver, y0, target).value

    return root, [jnp.array([1.0, 0.2]), jnp.float32(0.7)]


@program("optimistix")
def least_squares_by_levenberg_marquardt() -> Made:
    import optimistix

    def fit(y0, target):
        solver = optimistix.LevenbergMarquardt(rtol=1e-4, atol=1e-5)
        return optimistix.least_squares(_residual, solver, y0, target).value

    return fit, [jnp.array([1.0, 0.2]), jnp.float32(0.7)]


@program("optimistix")
def minimum_by_bfgs() -> Made:
    import optimistix

    def least(y0, target):
        solver = optimistix.BFGS(rtol=1e-4, atol=1e-5)
        return optimistix.minimise(
            lambda y, args: jnp.sum((y - args) ** 2) + jnp.sum(y**4), solver, y0, target
        ).value

    return least, [jnp.array([1.0, 0.2]), jnp.float32(0.7)]


@program("optimistix")
def fixed_point_with_its_gradient() -> Made:
    import optimistix

    def point(a):
        solver = optimistix.FixedPointIteration(rtol=1e-5, atol=1e-6)
        return optimistix.fixed_point(
            lambda y, a: jnp.cos(a * y), solver, jnp.float32(0.5), a
        ).value

    return jax.value_and_grad(point), [jnp.float32(0.8)]


def _matrix(size: int, seed: int = 0) -> jax.Array:
    return jax.random.normal(jax.random.key(seed), (size, size)) + size * jnp.eye(size)


@program("lineax", sample=True)
def linear_solve() -> Made:
    import lineax

    def solve(matrix, vector):
        return lineax.linear_solve(lineax.MatrixLinearOperator(matrix), vector).value

    return solve, [_matrix(4), jnp.arange(4.0)]


@program("lineax")
def conjugate_gradients() -> Made:
    import lineax

    def solve(matrix, vector):
        operator = lineax.MatrixLinearOperator(matrix @ matrix.T, lineax.positive_semidefinite_tag)
        return lineax.linear_solve(operator, vector, lineax.CG(rtol=1e-5, atol=1e-5)).value

    return solve, [_matrix(4), jnp.arange(4.0)]


@program("lineax")
def gmres_and_qr() -> Made:
    import lineax

    def solve(matrix, tall, vector):
        square = lineax.MatrixLinearOperator(matrix)
        first = lineax.linear_solve(square, vector, lineax.GMRES(rtol=1e-5, atol=1e-5)).value
        return first, lineax.linear_solve(
            lineax.MatrixLinearOperator(tall), vector, lineax.QR()
        ).value

    tall = jax.random.normal(jax.random.key(3), (4, 2))
    return solve, [_matrix(4), tall, jnp.arange(4.0)]


@program("lineax")
def gradient_of_a_tridiagonal_solve() -> Made:
    import lineax

    def loss(diagonal, vector):
        operator = lineax.TridiagonalLinearOperator(
            diagonal, 0.1 * diagonal[1:], 0.2 * diagonal[1:]
        )
        return jnp.sum(lineax.linear_solve(operator, vector).value ** 2)

    return jax.grad(loss, (0, 1)), [jnp.arange(1.0, 6.0), jnp.ones(5)]


@program("quadax")
def adaptive_gauss_kronrod() -> Made:
    import quadax

    def integral(a):
        return quadax.quadgk(lambda x: jnp.exp(-a * x**2), [0.0, 1.0], epsabs=1e-5, epsrel=1e-5)[0]

    return integral, [jnp.float32(1.5)]


@program("quadax")
def romberg_and_simpson() -> Made:
    import quadax

    def integral(a):
        romberg = quadax.romberg(lambda x: jnp.cos(a * x), [0.0, 1.0], epsabs=1e-4, epsrel=1e-4)[0]
        x = jnp.linspace(0.0, 1.0, 9)
        return romberg, quadax.simpson(jnp.sin(a * x), x=x)

    return integral, [jnp.float32(1.5)]


@program("jaxopt")
def projected_gradient() -> Made:
    import jaxopt

    def solve(matrix, vector):
        def loss(x):
            return jnp.sum((matrix @ x - vector) ** 2)

        solver = jaxopt.ProjectedGradient(
            loss, jaxopt.projection.projection_simplex, maxiter=20, implicit_diff=False
        )
        return solver.run(jnp.full(4, 0.25)).params

    return solve, [_matrix(4), jnp.arange(4.0)]


@program("jaxopt")
def lbfgs() -> Made:
    import jaxopt

    def solve(x0, target):
        solver = jaxopt.LBFGS(lambda x: jnp.sum((x - target) ** 2 + 0.1 * x**4), maxiter=10)
        return solver.run(x0).params

    return solve, [jnp.array([1.0, -0.5, 0.2]), jnp.array([0.3, 0.1, -0.4])]


@program("optax", sample=True)
def adamw_step() -> Made:
    import optax

    params = {"w": jax.random.normal(jax.random.key(0), (4, 3)), "b": jnp.zeros(3)}
    optimiser = optax.chain(
        optax.clip_by_global_norm(1.0), optax.adamw(optax.cosine_decay_schedule(1e-2, 100))
    )

    def step(params, state, x, y):
        def loss(p):
            return optax.softmax_cross_entropy_with_integer_labels(x @ p["w"] + p["b"], y).mean()

        updates, state = optimiser.update(jax.grad(loss)(params), state, params)
        return optax.apply_updates(params, updates), state

    x = jax.random.normal(jax.random.key(1), (5, 4))
    return step, [params, optimiser.init(params), x, jnp.array([0, 2, 1, 1, 0])]


@program("optax")
def lion_and_lamb_steps() -> Made:
    import optax

    params = jax.random.normal(jax.random.key(0), (4, 3))
    lion, lamb = optax.lion(1e-3), optax.lamb(1e-3)

    def step(params, gradient, first, second):
        return lion.update(gradient, first, params), lamb.update(gradient, second, params)

    return step, [params, jnp.cos(params), lion.init(params), lamb.init(params)]


@program("kfac-jax")
def inverses_of_kronecker_factors() -> Made:
    import kfac_jax

    def fn(matrix, vector):
        damped = kfac_jax.utils.psd_inv(matrix @ matrix.T)
        return damped, kfac_jax.utils.pi_adjusted_kronecker_inverse(
            matrix @ matrix.T, jnp.outer(vector, vector) + jnp.eye(4), damping=jnp.float32(0.1)
        )

    return fn, [_matrix(4), jnp.arange(4.0)]


@program("kfac-jax")
def loss_with_registered_layers() -> Made:
    import kfac_jax

    def loss(w, x, y):
        logits = jnp.tanh(x @ w)
        kfac_jax.register_softmax_cross_entropy_loss(logits, y)
        return jnp.mean(-jax.nn.log_softmax(logits)[jnp.arange(5), y])

    w = jax.random.normal(jax.random.key(0), (4, 3))
    x = jax.random.normal(jax.random.key(1), (5, 4))
    return jax.value_and_grad(loss), [w, x, jnp.array([0, 2, 1, 1, 0])]


@program("ott-jax", module="ott")
def sinkhorn() -> Made:
    from ott.geometry import pointcloud
    from ott.problems.linear import linear_problem
    from ott.solvers.linear import sinkhorn

    def solve(x, y):
        geometry = pointcloud.PointCloud(x, y, epsilon=0.5)
        out = sinkhorn.Sinkhorn(max_iterations=50)(linear_problem.LinearProblem(geometry))
        return out.reg_ot_cost, out.matrix

    x = jax.random.normal(jax.random.key(0), (5, 2))
    return solve, [x, x[:4] + 1.0]


@program("ott-jax", module="ott")
def soft_sort_and_ranks() -> Made:
    from ott.tools import soft_sort

    return lambda x: (soft_sort.sort(x), soft_sort.ranks(x)), [
        jax.random.normal(jax.random.key(0), (6,))
    ]


@program("interpax")
def cubic_and_akima_interpolation() -> Made:
    import interpax

    x = jnp.linspace(0.0, 3.0, 8)

    def fn(at, values):
        cubic = interpax.interp1d(at, x, values, method="cubic2")
        return cubic, interpax.interp1d(at, x, values, method="akima", derivative=1)

    return fn, [jnp.array([0.1, 1.3, 2.7]), jnp.sin(x)]


@program("interpax")
def interpolation_in_two_dimensions() -> Made:
    import interpax

    x, y = jnp.linspace(0.0, 3.0, 6), jnp.linspace(0.0, 2.0, 5)

    def fn(at_x, at_y, values):
        return interpax.interp2d(at_x, at_y, x, y, values, method="cubic")

    values = jnp.sin(x)[:, None] * jnp.cos(y)
    return fn, [jnp.array([0.1, 1.3, 2.7]), jnp.array([0.2, 0.9, 1.8]), values]


@program("orthax")
def chebyshev_series() -> Made:
    import orthax

    def fn(x, c):
        return orthax.chebyshev.chebval(x, c), orthax.chebyshev.chebder(c)

    return fn, [jnp.linspace(-1.0, 1.0, 7), jnp.array([1.0, 0.5, -0.2, 0.1])]


@program("orthax")
def legendre_products_and_fits() -> Made:
    import orthax

    def fn(x, y, c):
        product = orthax.legendre.legmul(c, c[::-1])
        return product, orthax.legendre.legfit(x, y, 2)

    x = jnp.linspace(-1.0, 1.0, 7)
    return fn, [x, jnp.exp(x), jnp.array([1.0, 0.5, -0.2])]
