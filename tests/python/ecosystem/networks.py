# SPDX-License-Identifier: Apache-2.0
"""Networks of model libraries, with small random weights."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ecosystem.table import Made, program


def _normal(seed: int, *shape: int) -> jax.Array:
    return jax.random.normal(jax.random.key(seed), shape)


def _small(config_class, **more):
    return config_class(
        vocab_size=50,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
        **more,
    )


_TOKENS = jnp.array([[1, 7, 3, 9, 2, 0], [4, 5, 6, 2, 0, 0]], jnp.int32)


@program("transformers")
def flax_bert() -> Made:
    import transformers

    model = transformers.FlaxBertModel(_small(transformers.BertConfig), input_shape=(1, 8))
    mask = (_TOKENS != 0).astype(jnp.int32)
    return lambda x, mask: model(x, mask).last_hidden_state, [_TOKENS, mask]


@program("transformers")
def flax_gpt2() -> Made:
    import transformers

    config = transformers.GPT2Config(
        vocab_size=50,
        n_positions=32,
        n_embd=16,
        n_layer=2,
        n_head=2,
        bos_token_id=1,
        eos_token_id=2,
    )
    model = transformers.FlaxGPT2LMHeadModel(config, input_shape=(1, 8))
    return lambda x: model(x).logits, [_TOKENS]


@program("transformers")
def flax_llama() -> Made:
    import transformers

    model = transformers.FlaxLlamaForCausalLM(_small(transformers.LlamaConfig), input_shape=(1, 8))
    return lambda x: model(x).logits, [_TOKENS]


@program("transformers")
def flax_gpt2_generates_greedily() -> Made:
    import transformers

    config = transformers.GPT2Config(
        vocab_size=50,
        n_positions=32,
        n_embd=16,
        n_layer=1,
        n_head=2,
        bos_token_id=1,
        eos_token_id=2,
    )
    model = transformers.FlaxGPT2LMHeadModel(config, input_shape=(1, 8))
    return lambda x: model.generate(x, max_length=10, pad_token_id=0).sequences, [_TOKENS]


@program("transformers")
def flax_vit() -> Made:
    import transformers

    config = transformers.ViTConfig(
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        image_size=16,
        patch_size=8,
    )
    model = transformers.FlaxViTModel(config)
    return lambda x: model(x).pooler_output, [_normal(0, 2, 3, 16, 16)]


@program("keras-hub")
def bert_backbone() -> Made:
    import keras_hub

    model = keras_hub.models.BertBackbone(
        vocabulary_size=50, num_layers=2, num_heads=2, hidden_dim=16, intermediate_dim=32
    )

    def fn(tokens, mask):
        segments = jnp.zeros_like(tokens)
        return model({"token_ids": tokens, "segment_ids": segments, "padding_mask": mask})

    return fn, [_TOKENS, (_TOKENS != 0).astype(jnp.int32)]


@program("keras-hub")
def gemma_backbone() -> Made:
    import keras_hub

    model = keras_hub.models.GemmaBackbone(
        vocabulary_size=50,
        num_layers=2,
        num_query_heads=2,
        num_key_value_heads=1,
        hidden_dim=16,
        intermediate_dim=32,
        head_dim=8,
    )
    return lambda x, m: model({"token_ids": x, "padding_mask": m}), [
        _TOKENS,
        (_TOKENS != 0).astype(jnp.int32),
    ]


@program("keras")
def convnext() -> Made:
    import keras

    inputs = keras.Input((16, 16, 3))
    x = keras.layers.Conv2D(8, 4, strides=4)(inputs)
    x = keras.layers.LayerNormalization()(x)
    y = keras.layers.DepthwiseConv2D(3, padding="same")(x)
    x = x + keras.layers.Dense(8)(keras.layers.Activation("gelu")(keras.layers.Dense(32)(y)))
    model = keras.Model(inputs, keras.layers.GlobalAveragePooling2D()(x))
    return lambda x: model(x), [_normal(0, 2, 16, 16, 3)]


@program("keras")
def bidirectional_lstm() -> Made:
    import keras

    model = keras.Sequential(
        [
            keras.Input((6, 4)),
            keras.layers.Bidirectional(keras.layers.LSTM(8, return_sequences=True)),
            keras.layers.GRU(5),
        ]
    )
    return lambda x: model(x), [_normal(0, 2, 6, 4)]


@program("flax")
def linen_autoencoder() -> Made:
    import flax.linen as nn

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            y = nn.relu(nn.Conv(8, (3, 3), strides=2)(x))
            y = nn.GroupNorm(2)(y)
            return nn.ConvTranspose(3, (3, 3), strides=(2, 2))(y)

    x = _normal(0, 2, 8, 8, 3)
    params = Net().init(jax.random.key(1), x)
    return lambda x: Net().apply(params, x), [x]


@program("flax")
def nnx_decoder_block() -> Made:
    from flax import nnx

    class Block(nnx.Module):
        def __init__(self, rngs):
            self.norm = nnx.RMSNorm(16, rngs=rngs)
            self.attention = nnx.MultiHeadAttention(2, 16, decode=False, rngs=rngs)
            self.up, self.down = nnx.Linear(16, 32, rngs=rngs), nnx.Linear(32, 16, rngs=rngs)

        def __call__(self, x):
            mask = nnx.make_causal_mask(x[..., 0])
            x = x + self.attention(self.norm(x), mask=mask)
            return x + self.down(nnx.silu(self.up(x)))

    return Block(nnx.Rngs(0)), [_normal(0, 2, 6, 16)]


@program("dm-haiku", module="haiku")
def residual_network() -> Made:
    import haiku as hk

    def net(x, is_training):
        model = hk.nets.ResNet((1, 1, 1, 1), 5, channels_per_group=(8, 8, 16, 16), bottleneck=False)
        return model(x, is_training)

    model = hk.without_apply_rng(hk.transform_with_state(net))
    x = _normal(0, 1, 32, 32, 3)
    params, state = model.init(jax.random.key(1), x, is_training=True)
    return lambda x: model.apply(params, state, x, is_training=False)[0], [x]


@program("dm-haiku", module="haiku")
def recurrent_core() -> Made:
    import haiku as hk

    def net(x):
        core = hk.DeepRNN([hk.LSTM(8), jnp.tanh, hk.GRU(4)])
        return hk.dynamic_unroll(core, x, core.initial_state(x.shape[1]))[0]

    model = hk.without_apply_rng(hk.transform(net))
    x = _normal(0, 5, 2, 3)
    params = model.init(jax.random.key(1), x)
    return lambda x: model.apply(params, x), [x]


@program("equinox")
def attention_with_a_check() -> Made:
    import equinox as eqx

    attention = eqx.nn.MultiheadAttention(2, 8, key=jax.random.key(0))

    def fn(x):
        x = eqx.error_if(x, jnp.any(jnp.isnan(x)), "nan")
        return attention(x, x, x)

    return jax.vmap(fn), [_normal(0, 3, 5, 8)]


@program("equinox")
def stateful_batch_norm() -> Made:
    import equinox as eqx

    model, state = eqx.nn.make_with_state(eqx.nn.BatchNorm)(4, axis_name="batch", mode="batch")

    def fn(x):
        norm = jax.vmap(model, axis_name="batch", in_axes=(0, None), out_axes=(0, None))
        return norm(x, state)[0]

    return fn, [_normal(0, 3, 4, 5)]


@program("equimo")
def vision_transformer() -> Made:
    import equimo.models

    model = equimo.models.VisionTransformer(
        img_size=16,
        in_channels=3,
        patch_size=8,
        dim=16,
        num_heads=2,
        depths=[2],
        num_classes=5,
        key=jax.random.key(0),
    )
    return lambda x: model(x, jax.random.key(0), inference=True), [_normal(0, 3, 16, 16)]


@program("equimo")
def squeeze_and_excite() -> Made:
    import equimo.layers.squeeze_excite as layers

    layer = layers.SEModule(8, key=jax.random.key(0))
    return lambda x: layer(x), [_normal(0, 8, 6, 6)]


@program("jraph", sample=True)
def graph_network() -> Made:
    import jraph

    weight = _normal(2, 6, 3)

    @jraph.concatenated_args
    def update(features):
        return jnp.tanh(features[..., :6] @ weight)

    network = jraph.GraphNetwork(update, update)

    def fn(nodes, edges):
        graph = jraph.GraphsTuple(
            nodes=nodes,
            edges=edges,
            senders=jnp.array([0, 1, 2, 3]),
            receivers=jnp.array([1, 2, 3, 0]),
            n_node=jnp.array([3, 1]),
            n_edge=jnp.array([3, 1]),
            globals=jnp.ones((2, 3)),
        )
        out = network(graph)
        return out.nodes, out.edges

    return fn, [_normal(0, 4, 3), _normal(1, 4, 3)]


@program("jraph", sample=True)
def graph_attention_and_pooling() -> Made:
    import jraph

    query, logit = _normal(2, 3, 4), _normal(3, 8)
    network = jraph.GAT(
        lambda n: n @ query,
        lambda s, r, e: jax.nn.leaky_relu(jnp.concatenate([s, r], -1) @ logit)[:, None],
    )

    def fn(nodes):
        graph = jraph.GraphsTuple(
            nodes=nodes,
            edges=None,
            senders=jnp.array([0, 1, 2, 2]),
            receivers=jnp.array([1, 2, 3, 0]),
            n_node=jnp.array([2, 2]),
            n_edge=jnp.array([2, 2]),
            globals=None,
        )
        out = network(graph).nodes
        return out, jraph.segment_softmax(out[:, 0], jnp.array([0, 0, 1, 1]), 2)

    return fn, [_normal(0, 4, 3)]


@program("e3nn-jax", module="e3nn_jax")
def tensor_product() -> Made:
    import e3nn_jax as e3nn

    def fn(x, vectors):
        features = e3nn.IrrepsArray("2x0e + 1o", x)
        harmonics = e3nn.spherical_harmonics("0e + 1o + 2e", vectors, normalize=True)
        return e3nn.tensor_product(features, harmonics).array

    return fn, [_normal(0, 4, 5), _normal(1, 4, 3)]


@program("e3nn-jax", module="e3nn_jax")
def gates_and_rotations() -> Made:
    import e3nn_jax as e3nn

    def fn(x, angles):
        features = e3nn.IrrepsArray("3x0e + 1o + 2e", x)
        rotated = features.transform_by_angles(angles[0], angles[1], angles[2])
        return e3nn.gate(rotated).array, e3nn.norm(rotated).array

    return fn, [_normal(0, 4, 11), jnp.array([0.3, 0.7, -0.2])]


@program("penzai")
def softmax_of_named_arrays() -> Made:
    from penzai import pz

    def fn(x):
        named = pz.nx.wrap(x).tag("seq", "features")
        layer = pz.nn.Sequential([pz.nn.Softmax("features"), pz.nn.Elementwise(jax.nn.gelu)])
        return layer(named).unwrap("seq", "features")

    return fn, [_normal(0, 4, 6)]


@program("penzai")
def multilayer_perceptron() -> Made:
    from penzai import pz
    from penzai.models import simple_mlp

    model = simple_mlp.MLP.from_config(
        name="mlp", init_base_rng=jax.random.key(0), feature_sizes=[4, 8, 3]
    )

    def fn(x):
        return model(pz.nx.wrap(x).tag("batch", "features")).unwrap("batch", "features")

    return fn, [_normal(0, 5, 4)]
