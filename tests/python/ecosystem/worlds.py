# SPDX-License-Identifier: Apache-2.0
"""Physics, games, reinforcement learning, evolution, geometry."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ecosystem.table import Made, program


def _normal(seed: int, *shape: int) -> jax.Array:
    return jax.random.normal(jax.random.key(seed), shape)


_PENDULUM = """
<mujoco>
  <option timestep="0.01" iterations="4" ls_iterations="4"/>
  <worldbody>
    <body pos="0 0 1">
      <joint type="hinge" axis="0 1 0" damping="0.1"/>
      <geom type="capsule" size="0.05" fromto="0 0 0 0 0 -0.5" mass="1"/>
      <body pos="0 0 -0.5">
        <joint name="elbow" type="hinge" axis="0 1 0"/>
        <geom type="capsule" size="0.04" fromto="0 0 0 0 0 -0.4" mass="0.5"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="elbow" gear="2"/></actuator>
</mujoco>
"""


@program("brax")
def generalized_step() -> Made:
    from brax.generalized import pipeline
    from brax.io import mjcf

    system = mjcf.loads(_PENDULUM)
    state = pipeline.init(system, jnp.array([0.3, -0.2]), jnp.zeros(2))
    step = jax.jit(lambda state, action: pipeline.step(system, state, action).q)
    return step, [state, jnp.array([0.5])]


@program("brax")
def policy_network() -> Made:
    from brax.training.agents.ppo import networks

    ppo = networks.make_ppo_networks(6, 2, policy_hidden_layer_sizes=(16, 16))
    params = ppo.policy_network.init(jax.random.key(0))

    def fn(x):
        logits = ppo.policy_network.apply(None, params, x)
        return ppo.parametric_action_distribution.mode(logits)

    return fn, [_normal(0, 3, 6)]


def _mjx():
    import mujoco
    from mujoco import mjx

    model = mjx.put_model(mujoco.MjModel.from_xml_string(_PENDULUM))
    return mjx, model, mjx.make_data(model)


@program("mujoco-mjx", module="mujoco.mjx")
def kinematics() -> Made:
    mjx, model, data = _mjx()

    def fn(q):
        moved = mjx.kinematics(model, data.replace(qpos=q))
        return moved.xpos, moved.xquat

    return fn, [jnp.array([0.3, -0.2])]


@program("mujoco-mjx", module="mujoco.mjx")
def step() -> Made:
    mjx, model, data = _mjx()

    def fn(q, v, control):
        after = mjx.step(model, data.replace(qpos=q, qvel=v, ctrl=control))
        return after.qpos, after.qvel

    return fn, [jnp.array([0.3, -0.2]), jnp.array([0.1, 0.0]), jnp.array([0.5])]


_BALL = """
<mujoco>
  <option timestep="0.01" iterations="4" ls_iterations="4"/>
  <worldbody>
    <geom type="plane" size="1 1 0.1"/>
    <body pos="0 0 0.09"><freejoint/><geom type="sphere" size="0.1" mass="1"/></body>
  </worldbody>
</mujoco>
"""


@program("mujoco-mjx", module="mujoco.mjx")
def step_with_a_contact() -> Made:
    import mujoco
    from mujoco import mjx

    model = mjx.put_model(mujoco.MjModel.from_xml_string(_BALL))
    data = mjx.make_data(model)

    def fn(q, v):
        after = mjx.step(model, data.replace(qpos=q, qvel=v))
        return after.qpos, after.qvel

    return fn, [data.qpos, jnp.array([0.2, 0.0, -0.5, 0.0, 0.1, 0.0])]


@program("brax")
def environment_step() -> Made:
    from brax import envs

    env = envs.get_environment("inverted_pendulum", backend="generalized")
    state = env.reset(jax.random.PRNGKey(0))

    def fn(state, action):
        after = env.step(state, action)
        return after.obs, after.reward, after.done

    return fn, [state, jnp.array([0.3])]


def _pgx(name: str) -> Made:
    import pgx

    game = pgx.make(name)
    state = game.init(jax.random.key(0))

    def fn(state, action):
        after = game.step(state, action)
        return after.observation, after.legal_action_mask, after.rewards

    return fn, [state, jnp.int32(4)]


@program("pgx")
def move_of_tic_tac_toe() -> Made:
    return _pgx("tic_tac_toe")


@program("pgx")
def move_of_connect_four() -> Made:
    return _pgx("connect_four")


@program("pgx")
def move_of_go() -> Made:
    return _pgx("go_9x9")


def _gymnax(name: str, action) -> Made:
    import gymnax

    env, params = gymnax.make(name)
    _, state = env.reset(jax.random.key(0), params)

    def fn(key, state, action):
        out = env.step(key, state, action, params)
        return out[0], out[2]

    return fn, [jax.random.key(1), state, action]


@program("gymnax")
def step_of_cart_pole() -> Made:
    return _gymnax("CartPole-v1", jnp.int32(1))


@program("gymnax")
def step_of_breakout() -> Made:
    return _gymnax("Breakout-MinAtar", jnp.int32(1))


def _search(policy):
    def recurrent(params, key, action, embedding):
        import mctx

        embedding = jnp.tanh(embedding @ params + 0.1 * action[:, None])
        out = mctx.RecurrentFnOutput(
            reward=embedding[:, 0],
            discount=jnp.full(embedding.shape[:1], 0.9),
            prior_logits=embedding[:, :3],
            value=embedding[:, 1],
        )
        return out, embedding

    def fn(key, weight, root):
        import mctx

        start = mctx.RootFnOutput(prior_logits=root[:, :3], value=root[:, 1], embedding=root)
        out = policy(weight, key, start, recurrent, num_simulations=8)
        return out.action, out.action_weights

    return fn, [jax.random.key(0), _normal(1, 4, 4), _normal(2, 2, 4)]


@program("mctx")
def muzero_search() -> Made:
    import mctx

    return _search(mctx.muzero_policy)


@program("mctx")
def gumbel_search() -> Made:
    import mctx

    return _search(mctx.gumbel_muzero_policy)


@program("rlax")
def returns_and_losses() -> Made:
    import rlax

    def fn(r, v):
        discounts = jnp.full(6, 0.9)
        returns = rlax.lambda_returns(r, discounts, v, 0.8)
        return returns, rlax.truncated_generalized_advantage_estimation(
            r, discounts, 0.8, jnp.concatenate([v, v[-1:]])
        )

    return fn, [_normal(0, 6), _normal(1, 6)]


@program("rlax")
def vtrace_and_distributional_q() -> Made:
    import rlax

    def fn(v, r, rho, logits):
        trace = rlax.vtrace(v, v + 0.1, r, jnp.full(6, 0.9), jnp.exp(rho))
        atoms = jnp.linspace(-1.0, 1.0, 5)
        loss = rlax.categorical_q_learning(
            atoms, logits, jnp.int32(1), jnp.float32(0.3), jnp.float32(0.9), atoms, logits + 0.1
        )
        return trace, loss

    return fn, [_normal(0, 6), _normal(1, 6), _normal(2, 6), _normal(3, 3, 5)]


@program("evosax")
def generation_of_cma_es() -> Made:
    from evosax.algorithms import CMA_ES

    strategy = CMA_ES(population_size=6, solution=jnp.zeros(3))
    params = strategy.default_params
    state = strategy.init(jax.random.key(0), jnp.zeros(3), params)
    return lambda key, state: strategy.ask(key, state, params)[0], [jax.random.key(1), state]


@program("evosax")
def generation_of_differential_evolution() -> Made:
    from evosax.algorithms import DifferentialEvolution

    strategy = DifferentialEvolution(population_size=6, solution=jnp.zeros(3))
    params = strategy.default_params
    population = _normal(0, 6, 3)
    state = strategy.init(jax.random.key(0), population, jnp.sum(population**2, -1), params)
    return lambda key, state: strategy.ask(key, state, params)[0], [jax.random.key(1), state]


@program("s2fft")
def spherical_harmonics_forth_and_back() -> Made:
    import s2fft

    def fn(f):
        flm = s2fft.forward_jax(f, 6)
        return jnp.abs(flm), s2fft.inverse_jax(flm, 6).real

    return fn, [_normal(0, 6, 11)]


@program("s2fft")
def wigner_d_matrices() -> Made:
    from s2fft.recursions import risbo_jax

    def fn(beta):
        dl = jnp.zeros((7, 7))
        for el in range(4):
            dl = risbo_jax.compute_full(dl, beta, 4, el)
        return dl

    return fn, [jnp.float32(0.7)]


@program("chex", sample=True)
def asserts_and_dataclasses() -> Made:
    import chex

    @chex.dataclass
    class State:
        position: chex.Array
        velocity: chex.Array

    def fn(x, v):
        chex.assert_equal_shape([x, v])
        state = State(position=x, velocity=v)
        moved = jax.tree.map(lambda a: a * 0.5, state)
        return State(position=moved.position + moved.velocity, velocity=jnp.sin(moved.velocity))

    return fn, [_normal(0, 4), _normal(1, 4)]


@program("chex", sample=True)
def mappable_dataclasses_in_a_scan() -> Made:
    import chex

    @chex.dataclass(frozen=True, mappable_dataclass=True)
    class Average:
        total: chex.Array
        count: chex.Array

    @chex.assert_max_traces(n=4)
    def step(state, x):
        chex.assert_rank(x, 1)
        return state.replace(total=state["total"] + x, count=state["count"] + 1), state["total"]

    def fn(x):
        state = Average(total=jnp.zeros(x.shape[1]), count=jnp.int32(0))
        return jax.lax.scan(step, state, x)

    return fn, [_normal(0, 5, 3)]


@program("jaxlie")
def poses() -> Made:
    import jaxlie

    def fn(tangent, point):
        pose = jaxlie.SE3.exp(tangent)
        return pose.apply(point), (pose @ pose).log(), pose.adjoint()

    return fn, [0.3 * _normal(0, 6), _normal(1, 3)]


@program("jaxlie")
def gradient_on_a_manifold() -> Made:
    import jaxlie

    def loss(rotation, x, y):
        return jnp.sum((jax.vmap(rotation.apply)(x) - y) ** 2)

    rotation = jaxlie.SO3.exp(jnp.array([0.1, 0.3, -0.2]))
    return lambda r, x, y: jaxlie.manifold.grad(loss)(r, x, y), [
        rotation,
        _normal(0, 5, 3),
        _normal(1, 5, 3),
    ]


@program("jax-cosmo")
def distances() -> Made:
    import jax_cosmo as jc

    def fn(omega, a):
        cosmo = jc.Planck15(Omega_c=omega)
        return jc.background.radial_comoving_distance(cosmo, a), jc.background.growth_factor(
            cosmo, a
        )

    return fn, [jnp.float32(0.26), jnp.array([0.4, 0.7, 1.0])]


@program("jax-cosmo")
def matter_power() -> Made:
    import jax_cosmo as jc

    def fn(k):
        return jc.power.linear_matter_power(jc.Planck15(), k)

    return fn, [jnp.array([0.01, 0.1, 1.0])]


@program("jax-md", module="jax_md")
def energies_and_forces() -> Made:
    from jax_md import energy, quantity, space

    displacement, _ = space.periodic(3.0)
    total = energy.soft_sphere_pair(displacement)
    return lambda r: (total(r), quantity.force(total)(r)), [
        jax.random.uniform(jax.random.key(0), (6, 2)) * 3.0
    ]


@program("jax-md", module="jax_md")
def step_of_molecular_dynamics() -> Made:
    from jax_md import energy, simulate, space

    displacement, shift = space.periodic(3.0)
    init, apply = simulate.nve(energy.lennard_jones_pair(displacement), shift, 1e-3)
    position = jnp.array([[0.3, 0.2], [1.6, 0.4], [0.5, 1.7], [2.1, 2.0]])
    state = init(jax.random.key(0), position, kT=0.1)

    def run(state):
        after = apply(apply(state))
        return after.position, after.momentum, after.force

    return run, [state]
