// The page of the translation service: what the user does, and what the service answers.

import { ask, Failure } from "./requests.js";
import { chosenText, prepare, Words } from "./sentences.js";

const QUIET = 250; // milliseconds without a key press, after which a text is translated
const LONGEST_QUIET = 1000; // milliseconds of continuous typing, after which it is translated nonetheless
const ALTERNATIVES = 3; // fewer if the service allows fewer
const AUTO = "auto"; // code that asks the service to detect the language
// Codes of a model whose languages are unknown.
const UNNAMED = { source: "Source", target: "Target" };
const COPIED_FOR = 2000; // milliseconds

const byId = (id) => document.getElementById(id);
const [source, target, mirror] = ["source", "target", "mirror"].map(byId);
const [sourceLanguage, targetLanguage] = ["source-language", "target-language"].map(byId);
const words = new Words(mirror, target, byId("attention"));

let languages = []; // of the service
let sentences = []; // on display
let current = 0; // sentence whose alternatives are listed
let alternatives = ALTERNATIVES; // further translations to ask for
let apiKey = "";
let hovered = null; // element of a word
let focused = null;
let request = null; // AbortController of the request under way
let quietTimer = null;
let retryTimer = null;
let copiedTimer = null;
let unsentSince = null; // time of the first change that no request has carried

// --- requests ---------------------------------------------------------------------------------------------------------

async function loadLanguages() {
  try {
    const [served, settings] = await Promise.all([ask("languages"), askForSettings()]);
    alternatives = Math.min(ALTERNATIVES, settings.alternativesLimit ?? ALTERNATIVES);
    byId("key-form").hidden = !settings.keyRequired;
    languages = served.map(({ code, name, targets }) => ({
      code, name, targets: targets.filter((other) => other !== code),
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

/** Return the settings of the service, none if it keeps them to itself. */
async function askForSettings() {
  try {
    return await ask("frontend/settings");
  } catch {
    return {};
  }
}

/** Translate once the user pauses. Long typing without a pause is translated on the way, unless a request is open. */
function translateSoon() {
  clearTimeout(quietTimer);
  clearTimeout(retryTimer);
  unsentSince ??= performance.now();
  const longest = request ? QUIET : Math.max(0, unsentSince + LONGEST_QUIET - performance.now());
  quietTimer = setTimeout(translate, Math.min(QUIET, longest));
}

async function translate() {
  clearTimeout(quietTimer);
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
  const mine = new AbortController();
  request = mine;
  showProgress(true);
  try {
    const body = { q: text, source: sourceLanguage.value, target: targetLanguage.value, alternatives };
    const answer = await ask("details", { body: apiKey ? { ...body, api_key: apiKey } : body, signal: mine.signal });
    if (mine !== request) return;
    if (!Array.isArray(answer.sentences)) throw new Failure("The service sent an answer without sentences.");
    say("");
    if (byId("key-form").contains(document.activeElement)) source.focus();
    byId("key-form").hidden = true;
    show(answer.sentences.map(prepare));
    showDetected(answer.detectedLanguage?.language);
  } catch (error) {
    if (mine === request && !mine.signal.aborted) report(error, translate);
  } finally {
    if (mine === request) {
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

/** Show why a request failed, and send it again if that may help. */
function report(error, again) {
  if (!(error instanceof Failure)) console.error(error);
  say(error instanceof Failure ? error.message : "The page cannot show the answer of the service.", "error");
  target.classList.add("stale");
  if (error.needsKey) {
    byId("key-form").hidden = false; // without the focus: the user may be typing
    byId("key-form").scrollIntoView({ block: "nearest" });
  } else if (error.retrySeconds) {
    countDown(error.retrySeconds, again);
  }
}

/** Count the seconds down, then try again. A screen reader reads the first number alone. */
function countDown(seconds, again) {
  const count = document.createElement("span");
  count.setAttribute("aria-live", "off");
  byId("status").append(" Trying again in ", count, " s.");
  const tick = (left) => {
    count.textContent = left;
    retryTimer = setTimeout(() => (left > 1 ? tick(left - 1) : again()), 1000);
  };
  tick(seconds);
}

function showProgress(busy) {
  byId("progress").classList.toggle("busy", busy);
  target.setAttribute("aria-busy", busy);
}

// --- display ----------------------------------------------------------------------------------------------------------

/** Show the sentences of an answer. A sentence that stays the same keeps the alternative that was taken. */
function show(answered) {
  const taken = new Map(sentences.map((sentence) => [sentence.source, chosenText(sentence)]));
  for (const sentence of answered) {
    const index = sentence.translations.findIndex(({ text }) => text === taken.get(sentence.source));
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
  const several = sentence?.translations.length > 1;
  byId("alternatives").hidden = !several;
  byId("alternatives-source").textContent = sentences.length > 1 && several ? sentence.source : "";
  const items = several ? sentence.translations.map((translation, index) => alternative(sentence, translation, index)) : [];
  byId("alternatives-list").replaceChildren(...items);
}

function alternative(sentence, { text, score }, index) {
  const [item, button, words, number] = ["li", "button", "span", "span"].map((name) => document.createElement(name));
  button.type = "button";
  button.setAttribute("aria-pressed", index === sentence.chosen);
  words.className = "alternative";
  words.dir = "auto";
  words.lang = target.lang;
  words.textContent = text;
  number.className = "score";
  number.textContent = typeof score === "number" ? score.toFixed(2).replace("-", "−") : "";
  button.append(words, number);
  button.addEventListener("click", () => {
    sentence.chosen = index;
    for (const other of byId("alternatives-list").querySelectorAll("button")) {
      other.setAttribute("aria-pressed", other === button);
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
  const remarks = [
    unknown.length ? `Not in the model's vocabulary: ${unknown.join(", ")}` : "",
    cut ? "Cut off: the model reached its length limit before it ended the sentence." : "",
  ];
  byId("remarks").replaceChildren(...remarks.filter(Boolean).map((remark) => {
    const item = document.createElement("li");
    item.textContent = remark;
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

/** Return the whole translation, with the white space of the source between sentences. */
function translation() {
  return sentences.map((sentence) => chosenText(sentence) + (sentence.separator ?? "")).join("");
}

// --- languages --------------------------------------------------------------------------------------------------------

function fill(select, entries) {
  const before = select.value;
  select.replaceChildren(...entries.map(({ code, name }) => new Option(name, code)));
  if (entries.some(({ code }) => code === before)) select.value = before;
  select.disabled = entries.length < 2;
}

function languagesChanged() {
  const chosen = sourceLanguage.value;
  const from = languages.filter(({ code }) => chosen === AUTO || code === chosen);
  const codes = [...new Set(from.flatMap(({ targets }) => targets))];
  fill(targetLanguage, codes.map((code) => ({ code, name: nameOf(code) })));
  source.lang = tagOf(chosen);
  target.lang = tagOf(targetLanguage.value);
  byId("swap").disabled = !canSwap();
  translate();
}

/** Return the name of a language for the user. */
function nameOf(code) {
  const name = languages.find((language) => language.code === code)?.name;
  return name && name !== code ? name : (UNNAMED[code] ?? code);
}

/** Name the language that the service detected in the option that asks for it. */
function showDetected(code) {
  const option = sourceLanguage.selectedOptions[0];
  if (option?.value !== AUTO || !code) return;
  option.text = `Detected: ${nameOf(code)}`;
  source.lang = tagOf(code);
}

/** Return a code as a value of the attribute lang, empty if the language is unknown. */
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
  targetLanguage.replaceChildren(new Option("", from)); // the choice that languagesChanged keeps
  targetLanguage.value = from;
  show([]);
  languagesChanged();
}

// --- copy -------------------------------------------------------------------------------------------------------------

async function copy() {
  const text = translation();
  let copied = true;
  try {
    await navigator.clipboard.writeText(text); // absent where the page comes by http from another machine
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
  const before = document.activeElement;
  const area = document.createElement("textarea");
  area.className = "hidden";
  area.value = text;
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  before?.focus();
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
  ArrowRight: (at) => at + 1, ArrowLeft: (at) => at - 1, Home: () => 0, End: (at, last) => last,
};

function moveFocus(event) {
  const all = [...target.querySelectorAll(".word")];
  const move = MOVES[event.key];
  if (!move || !all.length || event.ctrlKey || event.altKey || event.metaKey) return;
  event.preventDefault();
  const right = getComputedStyle(target).direction === "rtl" ? { ArrowRight: "ArrowLeft", ArrowLeft: "ArrowRight" } : {};
  const at = all.indexOf(event.target);
  const to = MOVES[right[event.key] ?? event.key](at, all.length - 1);
  all[Math.min(Math.max(to, 0), all.length - 1)].focus();
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
