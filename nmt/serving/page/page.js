// The page of the translation service: handles user input and shows the answers of the service.

import { ask, Failure } from "./requests.js";
import { chosenText, isolated, prepare, Words } from "./sentences.js";

const PAUSE = 250; // milliseconds without a key press before a text is translated
const LONGEST_DELAY = 1000; // milliseconds before a text is translated during continuous typing
const ALTERNATIVES = 3; // at most; the service may allow fewer
const AUTO = "auto"; // code that asks the service to detect the language
// Names for the codes of a model whose languages are unknown.
const UNNAMED = { source: "Source", target: "Target" };
const COPIED_FOR = 2000; // milliseconds that the button says "Copied"

const byId = (id) => document.getElementById(id);
const [source, target, mirror] = ["source", "target", "mirror"].map(byId);
const [sourceLanguage, targetLanguage] = ["source-language", "target-language"].map(byId);
const words = new Words(mirror, target, byId("attention"));

let languages = []; // of the service
let sentences = []; // shown sentences
let current = 0; // index of the sentence whose alternatives are listed
let alternatives = ALTERNATIVES; // number of alternatives to request
let apiKey = "";
let hovered = null; // word element under the pointer
let focused = null; // word element with the focus, or at the caret
let request = null; // AbortController of the open request
let pauseTimer = null;
let retryTimer = null;
let copiedTimer = null;
let unsentSince = null; // time of the first change that has not been sent yet

// --- requests ---------------------------------------------------------------------------------------------------------

async function loadLanguages() {
  try {
    const [served, settings] = await Promise.all([ask("languages"), askForSettings()]);
    alternatives = Math.min(ALTERNATIVES, settings.alternativesLimit ?? ALTERNATIVES);
    byId("key-form").hidden = !settings.keyRequired;
    languages = served.map((language) => ({
      ...language, targets: language.targets.filter((target) => target !== language.code),
    }));
    const sources = languages.filter(({ targets }) => targets.length);
    if (!sources.length) throw new Failure("The service has no model.");
    const detect = sources.length > 1 ? [{ code: AUTO, name: "Detect language" }] : [];
    fill(sourceLanguage, [...sources.map(({ code }) => ({ code, name: nameOf(code) })), ...detect]);
    say("");
    languagesChanged();
  } catch (error) {
    report(error, loadLanguages);
  }
}

/** Return the settings of the service; empty if it does not provide them. */
async function askForSettings() {
  try {
    return await ask("frontend/settings");
  } catch {
    return {};
  }
}

/** Translate when the user pauses. Continuous typing is translated in between, unless a request is open. */
function translateSoon() {
  clearTimeout(pauseTimer);
  clearTimeout(retryTimer);
  unsentSince ??= performance.now();
  const longest = request ? PAUSE : Math.max(0, unsentSince + LONGEST_DELAY - performance.now());
  pauseTimer = setTimeout(translate, Math.min(PAUSE, longest));
}

async function translate() {
  clearTimeout(pauseTimer);
  clearTimeout(retryTimer);
  unsentSince = null;
  request?.abort();
  request = null;
  const text = source.value;
  if (!languages.length) {
    loadLanguages();
    return;
  }
  if (!text.trim()) {
    say("");
    show([]);
    return;
  }
  const controller = new AbortController();
  request = controller;
  showProgress(true);
  try {
    const body = { q: text, source: sourceLanguage.value, target: targetLanguage.value, alternatives };
    const answer = await ask("details", { body: apiKey ? { ...body, api_key: apiKey } : body, signal: controller.signal });
    if (controller !== request) return;
    if (!Array.isArray(answer.sentences)) throw new Failure("The service sent an answer without sentences.");
    say("");
    if (byId("key-form").contains(document.activeElement)) source.focus();
    byId("key-form").hidden = true;
    show(answer.sentences.map(prepare));
    showDetected(answer.detectedLanguage?.language);
  } catch (error) {
    if (controller === request && !controller.signal.aborted) report(error, translate);
  } finally {
    if (controller === request) {
      request = null;
      showProgress(false);
    }
  }
}

// --- messages ---------------------------------------------------------------------------------------------------------

function say(message, kind = "") {
  byId("status").replaceChildren(message);
  byId("status").className = kind;
}

/** Show why a request failed, and retry it if that may help. */
function report(error, retry) {
  if (!(error instanceof Failure)) console.error(error);
  say(error instanceof Failure ? error.message : "The page cannot show the answer of the service.", "error");
  target.classList.add("stale");
  if (error.needsKey) {
    byId("key-form").hidden = false; // the focus stays, since the user may be typing
    byId("key-form").scrollIntoView({ block: "nearest" });
  } else if (error.retrySeconds) {
    countDown(error.retrySeconds, retry);
  }
}

/** Count the seconds down, then retry. A screen reader only reads the first number. */
function countDown(seconds, retry) {
  const count = document.createElement("span");
  count.setAttribute("aria-live", "off");
  byId("status").append(" Trying again in ", count, " s.");
  const tick = (left) => {
    count.textContent = left;
    retryTimer = setTimeout(() => (left > 1 ? tick(left - 1) : retry()), 1000);
  };
  tick(seconds);
}

function showProgress(busy) {
  byId("progress").classList.toggle("busy", busy);
  target.setAttribute("aria-busy", busy);
}

// --- display ----------------------------------------------------------------------------------------------------------

/** Show the sentences of an answer. An unchanged sentence keeps its selected alternative. */
function show(answered) {
  const selected = new Map(sentences.map((sentence) => [sentence.source, chosenText(sentence)]));
  for (const sentence of answered) {
    const index = sentence.translations.findIndex(({ text }) => text === selected.get(sentence.source));
    sentence.chosen = Math.max(index, 0);
  }
  sentences = answered;
  renderSource();
  current = Math.max(sentences.findLastIndex(({ start }) => start >= 0 && start <= source.selectionStart), 0);
  renderTarget();
  renderAlternatives();
  renderRemarks();
}

function renderSource() {
  hovered = focused = null;
  sentences = words.renderSource(source.value, sentences);
  byId("clear").disabled = !source.value;
}

function renderTarget() {
  hovered = focused = null;
  words.renderTarget(current);
  target.classList.remove("stale");
  byId("copy").disabled = !sentences.length;
  byId("swap").disabled = !canSwap();
}

function renderAlternatives() {
  const sentence = sentences[current];
  const hasAlternatives = sentence?.translations.length > 1;
  byId("alternatives").hidden = !hasAlternatives;
  copyLanguage(source, byId("alternatives-source"));
  byId("alternatives-source").textContent = sentences.length > 1 && hasAlternatives ? sentence.source : "";
  const items = sentence?.translations.map((translation, index) => alternativeItem(sentence, translation, index));
  byId("alternatives-list").replaceChildren(...(hasAlternatives ? items : []));
}

function alternativeItem(sentence, { text, score }, index) {
  const [item, button, words, number] = ["li", "button", "span", "span"].map((name) => document.createElement(name));
  button.type = "button";
  button.setAttribute("aria-pressed", index === sentence.chosen);
  words.className = "alternative";
  copyLanguage(target, words);
  words.textContent = text;
  number.className = "score";
  number.textContent = typeof score === "number" ? score.toFixed(2).replace("-", "−") : "";
  button.append(words, number);
  button.addEventListener("click", () => {
    sentence.chosen = index;
    for (const element of byId("alternatives-list").querySelectorAll("button")) {
      element.setAttribute("aria-pressed", element === button);
    }
    renderTarget();
    renderRemarks();
  });
  item.append(button);
  return item;
}

function renderRemarks() {
  const unknown = [...new Set(sentences.flatMap((sentence) => sentence.unknown))];
  const cut = sentences.filter(({ translations, chosen }) => translations[chosen]?.finished === false).length;
  const unknownWords = unknown.flatMap((word, place) => [place ? ", " : "", isolated(word, "bdi", source.lang)]);
  const remarks = [
    unknown.length ? ["Not in the model's vocabulary: ", ...unknownWords] : [],
    cut ? ["Cut off: the model reached its length limit before the end of the sentence."] : [],
  ];
  byId("remarks").replaceChildren(...remarks.filter(({ length }) => length).map((remark) => {
    const item = document.createElement("li");
    item.append(...remark);
    return item;
  }));
}

function setCurrent(number) {
  if (number === current || !(number in sentences)) return;
  current = number;
  for (const element of target.querySelectorAll(".sentence")) {
    const isCurrent = Number(element.dataset.number) === current;
    element.classList.toggle("current", isCurrent && sentences.length > 1);
    if (isCurrent) words.stopAt(element.querySelector(".word"));
  }
  renderAlternatives();
}

/** Return the whole translation, with the white space of the target language between sentences. */
function translation() {
  return sentences.map((sentence) => chosenText(sentence) + (sentence.target_separator ?? sentence.separator ?? "")).join("");
}

// --- languages --------------------------------------------------------------------------------------------------------

function fill(select, entries) {
  const previous = select.value;
  select.replaceChildren(...entries.map(({ code, name }) => new Option(name, code)));
  if (entries.some(({ code }) => code === previous)) select.value = previous;
  select.disabled = entries.length < 2;
}

function languagesChanged() {
  const sourceCode = sourceLanguage.value;
  const sources = languages.filter(({ code }) => sourceCode === AUTO || code === sourceCode);
  const codes = [...new Set(sources.flatMap(({ targets }) => targets))];
  fill(targetLanguage, codes.map((code) => ({ code, name: nameOf(code) })));
  setLanguage(sourceCode, source, mirror);
  setLanguage(targetLanguage.value, target);
  byId("swap").disabled = !canSwap();
  translate();
}

/** Return the displayed name of a language. */
function nameOf(code) {
  const name = languages.find((language) => language.code === code)?.name;
  return name && name !== code ? name : (UNNAMED[code] ?? code);
}

/** Show the detected language in the option "Detect language". */
function showDetected(code) {
  const option = sourceLanguage.selectedOptions[0];
  if (option?.value !== AUTO || !code) return;
  option.text = `Detected: ${nameOf(code)}`;
  setLanguage(code, source, mirror);
}

/** Set language and direction of elements with text; the direction of a text in an unknown language is its own. */
function setLanguage(code, ...elements) {
  for (const element of elements) {
    element.lang = tagOf(code);
    element.dir = languages.find((language) => language.code === code)?.direction ?? "auto";
  }
}

function copyLanguage(from, to) {
  to.lang = from.lang;
  to.dir = from.dir;
}

/** Return a language code as a value of the attribute lang; empty if the language is unknown. */
function tagOf(code) {
  return /^[a-z]{2,3}([-_][a-z0-9]+)*$/i.test(code) ? code.replaceAll("_", "-") : "";
}

function canSwap() {
  return languages.some(({ code, targets }) => code === targetLanguage.value && targets.includes(sourceLanguage.value));
}

function swap() {
  const [from, to, text] = [sourceLanguage.value, targetLanguage.value, translation()];
  if (text) source.value = text;
  sourceLanguage.value = to;
  targetLanguage.replaceChildren(new Option("", from)); // the selection that languagesChanged keeps
  targetLanguage.value = from;
  show([]);
  languagesChanged();
}

// --- copy -------------------------------------------------------------------------------------------------------------

async function copy() {
  const text = translation();
  let copied = true;
  try {
    await navigator.clipboard.writeText(text); // not available if the page comes from another machine by http
  } catch {
    copied = copyBySelection(text);
  }
  const button = byId("copy");
  button.classList.toggle("done", copied);
  byId("copy-label").textContent = copied ? "Copied" : "Copy";
  byId("copied").textContent = copied ? "Translation copied" : "";
  if (!copied) say("The browser does not allow copying. Select the translation and press Ctrl+C.", "error");
  clearTimeout(copiedTimer);
  copiedTimer = setTimeout(() => {
    button.classList.remove("done");
    byId("copy-label").textContent = "Copy";
    byId("copied").textContent = "";
  }, COPIED_FOR);
}

function copyBySelection(text) {
  const previous = document.activeElement;
  const area = document.createElement("textarea");
  area.className = "hidden";
  area.value = text;
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  previous?.focus();
  return copied;
}

// --- marks ------------------------------------------------------------------------------------------------------------

function renderMarks() {
  words.mark(hovered ?? focused);
}

function hover(element) {
  if (element === hovered) return;
  hovered = element;
  renderMarks();
}

function focusWord(element) {
  focused = element;
  renderMarks();
}

/** Mark the source word at the caret. */
function caretMoved() {
  if (source.selectionStart !== source.selectionEnd) return;
  const number = sentences.findLastIndex(({ start }) => start >= 0 && start <= source.selectionStart);
  if (number >= 0) setCurrent(number);
  focusWord(words.sourceWordAt(source.selectionStart));
}

const MOVES = {
  ArrowRight: (index) => index + 1, ArrowLeft: (index) => index - 1, Home: () => 0, End: (index, last) => last,
};

function moveFocus(event) {
  const elements = [...target.querySelectorAll(".word")];
  if (!MOVES[event.key] || !elements.length || event.ctrlKey || event.altKey || event.metaKey) return;
  event.preventDefault();
  const mirrored = getComputedStyle(target).direction === "rtl" ? { ArrowRight: "ArrowLeft", ArrowLeft: "ArrowRight" } : {};
  const last = elements.length - 1;
  const index = MOVES[mirrored[event.key] ?? event.key](elements.indexOf(event.target), last);
  elements[Math.min(Math.max(index, 0), last)].focus();
}

// --- events -----------------------------------------------------------------------------------------------------------

source.addEventListener("input", (event) => {
  renderSource();
  if (!source.value.trim()) translate();
  else if (!event.isComposing) translateSoon();
});
source.addEventListener("compositionend", translateSoon);
source.addEventListener("pointermove", (event) => {
  hover(document.elementsFromPoint(event.clientX, event.clientY).find((element) => element.matches("#mirror .word")) ?? null);
});
source.addEventListener("pointerleave", () => hover(null));
source.addEventListener("click", caretMoved);
source.addEventListener("keyup", (event) => {
  if (/^(Arrow|Home|End|Page)/.test(event.key)) caretMoved();
});
source.addEventListener("blur", () => focusWord(null));

target.addEventListener("pointerover", (event) => hover(event.target.closest(".word")));
target.addEventListener("pointerleave", () => hover(null));
target.addEventListener("click", (event) => {
  const sentence = event.target.closest(".sentence");
  if (sentence) setCurrent(Number(sentence.dataset.number));
});
target.addEventListener("focusin", (event) => {
  if (!event.target.matches(".word")) return;
  setCurrent(Number(event.target.closest(".sentence").dataset.number));
  words.stopAt(event.target);
  focusWord(event.target);
});
target.addEventListener("focusout", () => focusWord(null));
target.addEventListener("keydown", moveFocus);

document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    translate();
  } else if (event.key === "Escape") {
    hovered = focused = null;
    renderMarks();
  }
});

sourceLanguage.addEventListener("change", languagesChanged);
targetLanguage.addEventListener("change", languagesChanged);
byId("swap").addEventListener("click", swap);
byId("copy").addEventListener("click", copy);
byId("clear").addEventListener("click", () => {
  source.value = "";
  renderSource();
  translate();
  source.focus();
});
byId("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  apiKey = byId("key").value;
  translate();
});

renderSource();
loadLanguages();
