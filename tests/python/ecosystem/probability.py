# SPDX-License-Identifier: Apache-2.0
"""Distributions, sampling, Gaussian processes, state space models, flows."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ecosystem.table import Made, program

_TFP = {"module": "tensorflow_probability.substrates.jax"}


def _normal(seed: int, *shape: int) -> jax.Array:
    return jax.random.normal(jax.random.key(seed), shape)


@program("tfp-nightly", **_TFP)
def log_probabilities() -> Made:
    from tensorflow_probability.substrates import jax as tfp

    def fn(x, scale):
        mixture = tfp.distributions.MixtureSameFamily(
            tfp.distributions.Categorical(logits=jnp.array([0.1, 0.5, -0.3])),
            tfp.distributions.StudentT(3.0, jnp.array([-1.0, 0.0, 2.0]), scale),
        )
        return mixture.log_prob(x), tfp.distributions.Gamma(2.0, scale).log_prob(jnp.abs(x) + 0.1)

    return fn, [_normal(0, 7), jnp.float32(1.3)]


@program("tfp-nightly", **_TFP)
def bijectors_and_samples() -> Made:
    from tensorflow_probability.substrates import jax as tfp

    def fn(seed, x):
        bijector = tfp.bijectors.Chain([tfp.bijectors.Softplus(), tfp.bijectors.Shift(0.5)])
        sample = tfp.distributions.LogNormal(0.1, 0.5).sample(5, seed=seed)
        return bijector.forward(x), bijector.inverse_log_det_jacobian(jnp.exp(x), 0), sample

    return fn, [jax.random.key(0), _normal(1, 5)]


@program("tfp-nightly", **_TFP)
def kalman_filter() -> Made:
    from tensorflow_probability.substrates import jax as tfp

    def fn(x):
        model = tfp.distributions.LinearGaussianStateSpaceModel(
            num_timesteps=6,
            transition_matrix=jnp.array([[1.0, 0.1], [0.0, 0.9]]),
            transition_noise=tfp.distributions.MultivariateNormalDiag(scale_diag=[0.3, 0.2]),
            observation_matrix=jnp.array([[1.0, 0.0]]),
            observation_noise=tfp.distributions.MultivariateNormalDiag(scale_diag=[0.5]),
            initial_state_prior=tfp.distributions.MultivariateNormalDiag(scale_diag=[1.0, 1.0]),
        )
        return model.log_prob(x)

    return fn, [_normal(0, 6, 1)]


@program("distrax")
def flow_of_couplings() -> Made:
    import distrax

    weight = _normal(3, 2, 4)

    def fn(x):
        layer = distrax.MaskedCoupling(
            mask=jnp.array([True, True, False, False]),
            conditioner=lambda y: jnp.tanh(y[..., :2] @ weight)[..., None] * jnp.ones(2),
            bijector=lambda p: distrax.ScalarAffine(p[..., 0], log_scale=p[..., 1]),
        )
        base = distrax.MultivariateNormalDiag(jnp.zeros(4), jnp.ones(4))
        return distrax.Transformed(base, layer).log_prob(x)

    return fn, [_normal(0, 5, 4)]


@program("distrax")
def samples_and_entropies() -> Made:
    import distrax

    def fn(key, logits):
        distribution = distrax.Categorical(logits=logits)
        gumbel = distrax.Gumbel(0.0, 1.0)
        sample = distribution.sample(seed=key, sample_shape=(4,))
        return sample, distribution.entropy(), gumbel.log_prob(logits)

    return fn, [jax.random.key(0), _normal(0, 3, 5)]


@program("numpyro")
def log_density_and_gradient() -> Made:
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer.util import log_density

    x, y = _normal(0, 10, 3), _normal(1, 10)

    def model():
        weight = numpyro.sample("weight", dist.Normal(jnp.zeros(3), 1.0).to_event(1))
        noise = numpyro.sample("noise", dist.HalfCauchy(1.0))
        numpyro.sample("y", dist.Normal(x @ weight, noise), obs=y)

    def density(params):
        return log_density(model, (), {}, params)[0]

    return jax.value_and_grad(density), [{"weight": jnp.ones(3), "noise": jnp.float32(0.7)}]


@program("numpyro")
def step_of_variational_inference() -> Made:
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import SVI, Trace_ELBO
    from numpyro.infer.autoguide import AutoNormal

    def model(y):
        mean = numpyro.sample("mean", dist.Normal(0.0, 2.0))
        numpyro.sample("y", dist.Normal(mean, 1.0), obs=y)

    svi = SVI(model, AutoNormal(model), numpyro.optim.Adam(1e-2), Trace_ELBO())
    y = _normal(0, 10)
    state = svi.init(jax.random.key(0), y)
    return lambda state, y: svi.update(state, y)[1], [state, y]


@program("numpyro")
def nuts_transition() -> Made:
    from numpyro.infer.hmc import hmc

    init, sample = hmc(lambda z: 0.5 * jnp.sum(z**2), algo="NUTS")
    state = init(jnp.array([0.3, -0.2]), num_warmup=0, step_size=0.3, rng_key=jax.random.key(0))
    return lambda state: sample(state).z, [state]


@program("blackjax")
def hamiltonian_step() -> Made:
    import blackjax

    kernel = blackjax.hmc(
        lambda x: -0.5 * jnp.sum(x**2),
        step_size=0.2,
        inverse_mass_matrix=jnp.ones(3),
        num_integration_steps=5,
    )
    state = kernel.init(jnp.array([0.3, -0.2, 1.0]))
    return lambda key, state: kernel.step(key, state)[0], [jax.random.key(0), state]


@program("blackjax")
def nuts_step() -> Made:
    import blackjax

    kernel = blackjax.nuts(
        lambda x: -0.5 * jnp.sum(x**2), step_size=0.5, inverse_mass_matrix=jnp.ones(2)
    )
    state = kernel.init(jnp.array([0.3, -0.2]))
    return lambda key, state: kernel.step(key, state)[0], [jax.random.key(0), state]


@program("blackjax")
def langevin_chain() -> Made:
    import blackjax

    kernel = blackjax.mala(lambda x: -0.5 * jnp.sum(x**2), step_size=0.1)

    def chain(key, position):
        def step(state, key):
            state, _ = kernel.step(key, state)
            return state, state.position

        return jax.lax.scan(step, kernel.init(position), jax.random.split(key, 6))[1]

    return chain, [jax.random.key(0), jnp.array([0.3, -0.2])]


@program("tinygp")
def gaussian_process() -> Made:
    import tinygp

    x = jnp.linspace(0.0, 3.0, 8)

    def fn(y, scale, at):
        kernel = scale * tinygp.kernels.Matern32(0.5)
        gp = tinygp.GaussianProcess(kernel, x, diag=0.1)
        return gp.log_probability(y), gp.condition(y, at).gp.loc

    return fn, [jnp.sin(x), jnp.float32(1.2), jnp.array([0.3, 1.7])]


@program("tinygp")
def quasiseparable_kernel() -> Made:
    import tinygp

    x = jnp.linspace(0.0, 3.0, 8)

    def fn(y, scale):
        kernel = tinygp.kernels.quasisep.Matern52(scale)
        return tinygp.GaussianProcess(kernel, x, diag=0.1).log_probability(y)

    return jax.value_and_grad(fn, 1), [jnp.sin(x), jnp.float32(0.7)]


@program("flowjax")
def masked_autoregressive_flow() -> Made:
    import flowjax.distributions
    import flowjax.flows

    flow = flowjax.flows.masked_autoregressive_flow(
        jax.random.key(0),
        base_dist=flowjax.distributions.Normal(jnp.zeros(3)),
        flow_layers=2,
        nn_width=8,
    )
    return flow.log_prob, [_normal(0, 5, 3)]


@program("flowjax")
def spline_coupling_flow() -> Made:
    import flowjax.bijections
    import flowjax.distributions
    import flowjax.flows

    flow = flowjax.flows.coupling_flow(
        jax.random.key(0),
        base_dist=flowjax.distributions.Normal(jnp.zeros(3)),
        transformer=flowjax.bijections.RationalQuadraticSpline(knots=4, interval=2),
        flow_layers=2,
        nn_width=8,
    )
    return flow.log_prob, [_normal(0, 5, 3)]


@program("dynamax")
def hidden_markov_model() -> Made:
    from dynamax.hidden_markov_model import GaussianHMM

    model = GaussianHMM(num_states=3, emission_dim=2)
    params, _ = model.initialize(jax.random.key(0))

    def fn(emissions):
        posterior = model.smoother(params, emissions)
        return posterior.marginal_loglik, posterior.smoothed_probs

    return fn, [_normal(1, 7, 2)]


@program("dynamax")
def linear_gaussian_smoother() -> Made:
    from dynamax.linear_gaussian_ssm import LinearGaussianSSM

    model = LinearGaussianSSM(state_dim=2, emission_dim=3)
    params, _ = model.initialize(jax.random.key(0))
    return lambda y: model.smoother(params, y).smoothed_means, [_normal(1, 6, 3)]
