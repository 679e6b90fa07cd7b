// Keeps the files of the page, so that it works without its server. The server's files are used as long as it answers.

const CACHE = "nmt";
const FILES = [
  "./", "page.js", "model.json", "engine/translator.js", "engine/worker/translator-worker.js",
  "engine/worker/bergamot-translator-worker.js", "engine/worker/bergamot-translator-worker.wasm",
];

async function keepFiles() {
  const model = await (await fetch("model.json")).json();
  const cache = await caches.open(CACHE);
  await cache.addAll([...FILES, ...Object.values(model.files).map(file => file.name)]);
}

async function answer(request) {
  try {
    const response = await fetch(request);
    const cache = await caches.open(CACHE);
    if (response.ok) await cache.put(request, response.clone());
    return response;
  } catch (error) {
    const kept = await caches.match(request);
    if (kept) return kept;
    throw error;
  }
}

self.addEventListener("install", event => event.waitUntil(keepFiles()));
self.addEventListener("fetch", event => {
  if (event.request.method === "GET") event.respondWith(answer(event.request));
});
