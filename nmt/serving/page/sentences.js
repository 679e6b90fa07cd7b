// Sentences on display: their words as elements, and marks on words that attend to each other.
// Every text becomes a text node, so that none is read as HTML.

import { attentionOfWords, splitWords, wordsOfTokens } from "./words.js";

const LEAST_MARK = 0.12; // weight, relative to the strongest, from which a word is marked
const MOST_IN_CAPTION = 3;

/** Return sentences with their places in the source text: start, an offset in UTF-16 units, -1 if it is not found. */
function locate(sentences, text) {
  let from = 0;
  return sentences.map((sentence) => {
    const found = sentence.source ? text.indexOf(sentence.source, from) : -1;
    // Only white space lies between sentences. Text in front of a sentence that is found belongs to changed text.
    const start = found >= 0 && !text.slice(from, found).trim() ? found : -1;
    if (start >= 0) from = start + sentence.source.length;
    return { ...sentence, start };
  });
}

/** Return a sentence of an answer, ready for display.
 *
 * It gets chosen (index of the translation on display), sourceWords (spans), and unknown (words of the source that the
 * model does not know).
 */
export function prepare(sentence) {
  const unknown = [...new Set(sentence.translations.flatMap((translation) => translation.unknown ?? []))];
  return { ...sentence, chosen: 0, start: -1, sourceWords: splitWords(sentence.source), unknown };
}

/** Return the text of a sentence's translation on display. */
export function chosenText(sentence) {
  return sentence.translations[sentence.chosen]?.text ?? "";
}

/** The words of all sentences in both panes, and the marks on them. */
export class Words {
  #places = new WeakMap(); // element of a word -> {side, sentence, index}
  #marked = [];

  constructor(mirror, target, caption) {
    Object.assign(this, { mirror, target, caption });
    this.sentences = [];
  }

  /** Show the source text with the words of the sentences that it still holds. */
  renderSource(text, sentences) {
    this.clear();
    this.sentences = locate(sentences, text);
    const parts = [];
    let end = 0;
    for (const sentence of this.sentences) {
      sentence.sourceElements = [];
      if (sentence.start < 0) continue;
      parts.push(text.slice(end, sentence.start));
      const words = this.#elements(sentence, "source", sentence.source, sentence.sourceWords);
      for (const { word, element } of words.filter(({ element: found }) => found)) {
        element.classList.toggle("unknown", isUnknown(word, sentence.unknown));
      }
      parts.push(...words.map(({ node }) => node));
      end = sentence.start + sentence.source.length;
    }
    // A zero-width space gives the last line break of the text a line of its own, as in the text area.
    this.mirror.replaceChildren(...parts, text.slice(end), "\u200b");
    return this.sentences;
  }

  /** Show the translations of the sentences. */
  renderTarget(current) {
    this.clear();
    const parts = this.sentences.flatMap((sentence, number) => {
      const element = document.createElement("span");
      element.className = "sentence";
      element.dataset.number = number;
      element.classList.toggle("current", this.sentences.length > 1 && number === current);
      const text = chosenText(sentence);
      sentence.targetWords = splitWords(text);
      sentence.weights = sentence.chosen === 0
        ? attentionOfWords(sentence, sentence.source, sentence.sourceWords, text, sentence.targetWords)
        : null;
      element.append(...this.#elements(sentence, "target", text, sentence.targetWords).map(({ node }) => node));
      showDoubts(sentence, text);
      if (sentence.translations[sentence.chosen]?.check) element.append(checkMark(sentence.translations[sentence.chosen]));
      if (sentence.translations[sentence.chosen]?.finished === false) element.append(cutMark());
      return [element, sentence.separator ?? ""];
    });
    this.target.replaceChildren(...parts);
    this.stopAt(this.target.querySelectorAll(".sentence")[current]?.querySelector(".word"));
  }

  /** Make a word the only stop of the Tab key among the translations; arrow keys move on from it. */
  stopAt(element) {
    for (const other of this.target.querySelectorAll(".word[tabindex='0']")) other.tabIndex = -1;
    const stop = element ?? this.target.querySelector(".word");
    if (stop) stop.tabIndex = 0;
  }

  /** Return the nodes of a text: words as elements, and the text between them. */
  #elements(sentence, side, text, words) {
    const nodes = [];
    const elements = [];
    let end = 0;
    words.forEach((span, index) => {
      if (span.start > end) nodes.push({ node: text.slice(end, span.start) });
      const element = document.createElement("span");
      const word = text.slice(span.start, span.end);
      element.className = "word";
      element.textContent = word;
      if (side === "target") {
        element.tabIndex = -1;
        element.setAttribute("aria-describedby", this.caption.id);
      }
      this.#places.set(element, { side, sentence, index });
      elements.push(element);
      nodes.push({ node: element, element, word });
      end = span.end;
    });
    nodes.push({ node: text.slice(end) });
    sentence[`${side}Elements`] = elements;
    return nodes;
  }

  /** Return the element of the source word at an offset of the source text, or null. */
  sourceWordAt(offset) {
    for (const { start, sourceWords, sourceElements } of this.sentences) {
      const index = start < 0 ? -1 : sourceWords.findIndex((word) => start + word.start <= offset && offset <= start + word.end);
      if (index >= 0) return sourceElements[index];
    }
    return null;
  }

  /** Mark a word and the words of the other language that it is linked to; null clears all marks. */
  mark(element) {
    this.clear();
    const place = this.#places.get(element);
    if (!place?.sentence) return;
    const { side, sentence, index } = place;
    const weights = linksOf(sentence, side, index);
    this.#set(element, "chosen", 1);
    if (!weights) {
      this.#explain(element, sentence);
      return;
    }
    const strongest = Math.max(...weights);
    const others = side === "target" ? sentence.sourceElements : sentence.targetElements;
    const linked = weights
      .map((weight, other) => ({ weight, element: others[other], word: wordOf(sentence, side, other) }))
      .filter(({ weight }) => weight > 0 && weight >= LEAST_MARK * strongest)
      .sort((left, right) => right.weight - left.weight);
    for (const { weight, element: other } of linked) if (other) this.#set(other, "linked", weight / strongest);
    this.#caption(element.textContent, side === "target" ? "←" : "→", linked.slice(0, MOST_IN_CAPTION));
  }

  clear() {
    for (const element of this.#marked) {
      element.classList.remove("chosen", "linked");
      element.style.removeProperty("--strength");
    }
    this.#marked = [];
    this.caption.replaceChildren();
  }

  #set(element, name, strength) {
    element.classList.add(name);
    element.style.setProperty("--strength", strength.toFixed(3));
    this.#marked.push(element);
  }

  #caption(word, arrow, linked) {
    const parts = linked.flatMap(({ word: other, weight }, place) => [
      place ? ", " : "", isolated(other, "strong"), ` ${Math.round(100 * weight)}%`,
    ]);
    this.caption.replaceChildren(isolated(word, "strong"), ` ${arrow} `, ...parts);
  }

  #explain(element, sentence) {
    const reason = sentence.chosen ? "attention is known of the best translation only" : "no attention";
    this.caption.replaceChildren(isolated(element.textContent, "strong"), `: ${reason}`);
  }
}

/** Return the weights between a word and the words of the other language, or null. */
function linksOf(sentence, side, index) {
  if (!sentence.weights) return null;
  return side === "target" ? sentence.weights[index] : sentence.weights.map((row) => row?.[index] ?? 0);
}

/** Return word number index of the language that side is not. */
function wordOf(sentence, side, index) {
  const [text, words] = side === "target"
    ? [sentence.source, sentence.sourceWords]
    : [chosenText(sentence), sentence.targetWords];
  return text.slice(words[index].start, words[index].end);
}

function isUnknown(word, unknown) {
  const fold = (text) => text.normalize("NFKD").toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
  const folded = fold(word);
  return folded !== "" && unknown.some((other) => other.split(/\s+/u).some((part) => fold(part) === folded));
}

/** Colour the words of a translation by the probability that they stand in a reference, and say it. */
function showDoubts(sentence, text) {
  const judged = sentence.translations[sentence.chosen]?.words ?? [];
  const places = wordsOfTokens(judged.map(([word], number) => (number ? ` ${word}` : word)), text, sentence.targetWords);
  judged.forEach(([, probability], number) => {
    const element = sentence.targetElements[places[number]];
    if (!element) return;
    element.classList.add("judged");
    element.style.setProperty("--doubt", `${Math.round(100 - 100 * probability)}%`);
    element.title = `${Math.round(100 * probability)}% likely to stand in a reference`;
  });
}

/** Return a mark at the end of a translation that is to be checked. */
function checkMark({ confidence }) {
  const mark = document.createElement("span");
  mark.className = "cut";
  mark.textContent = `check: ${Math.round(100 * confidence)}%`;
  mark.title = "Probability that this is a good translation";
  return mark;
}

/** Return a mark at the end of a translation that reached the limit on its length. */
function cutMark() {
  const mark = document.createElement("span");
  mark.className = "cut";
  mark.textContent = "cut off";
  mark.title = "The model reached its length limit before it ended the sentence.";
  return mark;
}

/** Return an element whose direction of writing is that of its text alone. */
function isolated(text, name) {
  const element = document.createElement(name);
  element.dir = "auto";
  element.textContent = text;
  return element;
}
