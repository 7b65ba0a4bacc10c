// SPDX-License-Identifier: Apache-2.0
// Strokes on a canvas go into the model as they are; what comes back are ten probabilities.
import * as ort from "./runtime/ort.wasm.min.mjs";

const SIDE = 128;
const STROKE = 16;

const canvas = document.getElementById("canvas");
const pen = canvas.getContext("2d", { willReadFrequently: true });
const answer = document.getElementById("answer");
const clear = document.getElementById("clear");
const bars = [];
let strokes = 0; // of the present drawing
let reading = Promise.resolve(); // one after the other: a session runs once at a time

for (let digit = 0; digit < 10; ++digit) {
  const row = document.createElement("li");
  const track = document.createElement("div");
  const bar = document.createElement("div");
  track.className = "track";
  bar.className = "bar";
  track.append(bar);
  row.append(String(digit), track);
  document.getElementById("bars").append(row);
  bars.push(bar);
}

ort.env.wasm.numThreads = 1;
ort.env.wasm.wasmPaths = new URL("./runtime/", import.meta.url).href;
const session = await ort.InferenceSession.create("digits.onnx");

/** How much ink each pixel has, from 0 to 1: the canvas is transparent where nothing was drawn. */
function ink() {
  const pixels = pen.getImageData(0, 0, SIDE, SIDE).data;
  return Float32Array.from({ length: SIDE * SIDE }, (_, i) => pixels[4 * i + 3] / 255);
}

async function read() {
  const start = performance.now();
  const seen = strokes;
  const drawing = new ort.Tensor("float32", ink(), [SIDE, SIDE]);
  const { probabilities } = await session.run({ ink: drawing });
  if (seen > strokes) return; // wiped meanwhile
  const values = [...probabilities.data];
  const best = values.indexOf(Math.max(...values));
  bars.forEach((bar, digit) => (bar.style.width = `${100 * values[digit]}%`));
  answer.textContent = `${best}, ${(100 * values[best]).toFixed(0)} %`;
  answer.dataset.digit = best;
  answer.dataset.strokes = seen;
  document.getElementById("time").textContent =
    `${(performance.now() - start).toFixed(1)} ms in this browser`;
}

function position(event) {
  const box = canvas.getBoundingClientRect();
  return [
    ((event.clientX - box.left) / box.width) * SIDE,
    ((event.clientY - box.top) / box.height) * SIDE,
  ];
}

function begin(event) {
  canvas.setPointerCapture(event.pointerId);
  pen.beginPath();
  pen.moveTo(...position(event));
  draw(event);
}

function draw(event) {
  if (!canvas.hasPointerCapture(event.pointerId)) return;
  pen.lineWidth = STROKE;
  pen.lineCap = pen.lineJoin = "round";
  pen.lineTo(...position(event));
  pen.stroke();
}

function end() {
  strokes += 1;
  reading = reading.then(read);
}

function wipe() {
  strokes = 0;
  pen.clearRect(0, 0, SIDE, SIDE);
  bars.forEach((bar) => (bar.style.width = "0"));
  answer.textContent = "draw a digit";
  delete answer.dataset.digit;
  delete answer.dataset.strokes;
}

canvas.addEventListener("pointerdown", begin);
canvas.addEventListener("pointermove", draw);
canvas.addEventListener("pointerup", end);
clear.addEventListener("click", wipe);
document.addEventListener("keydown", (event) => event.key === "Escape" && wipe());
clear.disabled = false;
wipe();
