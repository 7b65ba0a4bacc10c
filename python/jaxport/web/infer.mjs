// SPDX-License-Identifier: Apache-2.0
// One run of a model in ONNX Runtime Web. Tensors come and go as {name, type, dims, data}, with the
// bytes of `data` in base64, so that every number arrives as it is.

const kArrays = {
  bool: Uint8Array,
  float16: Uint16Array,
  float32: Float32Array,
  float64: Float64Array,
  int16: Int16Array,
  int32: Int32Array,
  int64: BigInt64Array,
  int8: Int8Array,
  uint16: Uint16Array,
  uint32: Uint32Array,
  uint64: BigUint64Array,
  uint8: Uint8Array,
};

function fromBase64(text) {
  const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  return bytes.buffer;
}

function toBase64(view) {
  const bytes = new Uint8Array(view.buffer, view.byteOffset, view.byteLength);
  let text = "";
  for (let i = 0; i < bytes.length; i += 4096) {
    text += String.fromCharCode(...bytes.subarray(i, i + 4096));
  }
  return btoa(text);
}

function feedsOf(ort, inputs) {
  const feeds = {};
  for (const { name, type, dims, data } of inputs) {
    feeds[name] = new ort.Tensor(type, arrayOf(ort, type, fromBase64(data)), dims);
  }
  return feeds;
}

// Newer versions of JavaScript have an array for float16, and then ONNX Runtime wants it.
function arrayOf(ort, type, buffer) {
  const isNew = type === "float16" && typeof Float16Array !== "undefined";
  return isNew ? new Float16Array(buffer) : new kArrays[type](buffer);
}

async function run(ort, session, inputs) {
  const results = await session.run(feedsOf(ort, inputs));
  return session.outputNames.map((name) => {
    const { type, dims, data } = results[name];
    return { name, type, dims, data: toBase64(data) };
  });
}

// {outputs}, or {error, loaded}: what failed, and whether the model was loaded by then.
export async function infer(ort, provider, model, inputs) {
  let session = null;
  try {
    session = await ort.InferenceSession.create(model, { executionProviders: [provider] });
    return { outputs: await run(ort, session, inputs) };
  } catch (error) {
    return { error: String(error?.message ?? error), loaded: session !== null };
  } finally {
    await session?.release();
  }
}
