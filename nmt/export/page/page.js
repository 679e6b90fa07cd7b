// Translates with Bergamot's engine in WebAssembly. Every file is in this folder, so no text leaves the computer.

import {LatencyOptimisedTranslator, SupersededError, TranslatorBacking} from "./engine/translator.js";

const PAUSE = 150; // milliseconds without typing before a translation starts
const [source, target, status] = ["source", "target", "status"].map(id => document.getElementById(id));

class OwnModel extends TranslatorBacking {
  async loadModelRegistery() { // the name in the engine
    const response = await fetch("model.json");
    return [await response.json()];
  }
}

const backing = new OwnModel({pivotLanguage: null}); // the options are sent to the worker, which takes no function
backing.onerror = show;
const [{from, to}] = await backing.registry;
const translator = new LatencyOptimisedTranslator({}, backing);
let waiting;

function show(error) {
  status.textContent = `The translation failed: ${error.message ?? error}. Load the page again.`;
}

async function translate(text) {
  if (!text.trim()) {
    target.textContent = "";
    return;
  }
  const start = performance.now();
  try {
    const answer = await translator.translate({from, to, text, html: false});
    target.textContent = answer.target.text;
    status.textContent = `Translated in ${Math.round(performance.now() - start)} ms.`;
  } catch (error) {
    if (!(error instanceof SupersededError)) show(error);
  }
}

const names = new Intl.DisplayNames(["en"], {type: "language"});
document.getElementById("source-language").textContent = names.of(from);
document.getElementById("target-language").textContent = names.of(to);
source.lang = from;
target.lang = to;
source.addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(() => translate(source.value), PAUSE);
});
source.disabled = false;
source.focus();
status.textContent = "The model is loaded with the first translation.";

if ("serviceWorker" in navigator) {
  await navigator.serviceWorker.register("offline.js");
  await navigator.serviceWorker.ready;
  document.body.dataset.offline = "ready";
}
