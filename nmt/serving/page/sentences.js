// Shown sentences: their words as elements, and marks on words that attend to each other.
// Every text becomes a text node, so that no text is parsed as HTML.

import { attentionOfWords, splitWords, wordsOfTokens } from "./words.js";

const LEAST_MARK = 0.12; // least weight of a marked word, relative to the strongest
const MOST_IN_CAPTION = 3; // most words in the caption

/** Return sentences with their start in the source text, in UTF-16 units; -1 if the text lacks the sentence. */
function locate(sentences, text) {
  let end = 0; // end of the sentence before
  return sentences.map((sentence) => {
    const index = sentence.source ? text.indexOf(sentence.source, end) : -1;
    // There is only white space between sentences. Other text before a sentence means that the text was changed.
    const start = index >= 0 && !text.slice(end, index).trim() ? index : -1;
    if (start >= 0) end = start + sentence.source.length;
    return { ...sentence, start };
  });
}

/** Prepare a sentence of an answer for display.
 *
 * The result also has chosen (index of the shown translation), sourceWords (spans), and unknown (source words that the
 * model does not know).
 */
export function prepare(sentence) {
  const unknown = [...new Set(sentence.translations.flatMap((translation) => translation.unknown ?? []))];
  return { ...sentence, chosen: 0, start: -1, sourceWords: splitWords(sentence.source), unknown };
}

/** Return the text of the shown translation of a sentence. */
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

  /** Show the source text, with word elements for the sentences that are still in it. */
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
      for (const { word, element } of words.filter((word) => word.element)) {
        element.classList.toggle("unknown", isUnknown(word, sentence.unknown));
      }
      parts.push(...words.map(({ node }) => node));
      end = sentence.start + sentence.source.length;
    }
    // A zero-width space gives the last line break of the text a line of its own, as in the text area.
    this.mirror.replaceChildren(...parts, text.slice(end), "\u200b");
    return this.sentences;
  }

  /** Show the translations of the sentences; current is the index of the current sentence. */
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
      return [element, sentence.target_separator ?? sentence.separator ?? ""];
    });
    this.target.replaceChildren(...parts);
    this.stopAt(this.target.querySelectorAll(".sentence")[current]?.querySelector(".word"));
  }

  /** Make a word the only one that the Tab key reaches in the translation; arrow keys move to other words. */
  stopAt(element) {
    for (const word of this.target.querySelectorAll(".word[tabindex='0']")) word.tabIndex = -1;
    const stop = element ?? this.target.querySelector(".word");
    if (stop) stop.tabIndex = 0;
  }

  /** Return the nodes of a text: elements for words, and the text between them. */
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

  /** Return the element of the source word at an offset in the source text, or null. */
  sourceWordAt(offset) {
    for (const { start, sourceWords, sourceElements } of this.sentences) {
      const index = start < 0 ? -1 : sourceWords.findIndex((word) => start + word.start <= offset && offset <= start + word.end);
      if (index >= 0) return sourceElements[index];
    }
    return null;
  }

  /** Mark a word and its linked words of the other language; null clears all marks. */
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
    const elements = side === "target" ? sentence.sourceElements : sentence.targetElements;
    const linked = weights
      .map((weight, place) => ({ weight, element: elements[place], word: wordOf(sentence, side, place) }))
      .filter(({ weight }) => weight > 0 && weight >= LEAST_MARK * strongest)
      .sort((left, right) => right.weight - left.weight);
    for (const link of linked) if (link.element) this.#set(link.element, "linked", link.weight / strongest);
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
    const parts = linked.flatMap((link, place) => [
      place ? ", " : "", isolated(link.word, "strong"), ` ${Math.round(100 * link.weight)}%`,
    ]);
    this.caption.replaceChildren(isolated(word, "strong"), ` ${arrow} `, ...parts);
  }

  #explain(element, sentence) {
    const reason = sentence.chosen ? "attention is shown for the best translation only" : "no attention";
    this.caption.replaceChildren(isolated(element.textContent, "strong"), `: ${reason}`);
  }
}

/** Return the weights between a word and all words of the other language, or null. */
function linksOf(sentence, side, index) {
  if (!sentence.weights) return null;
  return side === "target" ? sentence.weights[index] : sentence.weights.map((row) => row?.[index] ?? 0);
}

/** Return the word with an index in the language opposite to side. */
function wordOf(sentence, side, index) {
  const [text, words] = side === "target"
    ? [sentence.source, sentence.sourceWords]
    : [chosenText(sentence), sentence.targetWords];
  return text.slice(words[index].start, words[index].end);
}

function isUnknown(word, unknown) {
  const fold = (text) => text.normalize("NFKD").toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
  const folded = fold(word);
  return folded !== "" && unknown.some((words) => words.split(/\s+/u).some((part) => fold(part) === folded));
}

/** Colour the words of a translation by their probability of occurring in a reference, and give it in a tooltip. */
function showDoubts(sentence, text) {
  const rated = sentence.translations[sentence.chosen]?.words ?? [];
  const places = wordsOfTokens(rated.map(([word], number) => (number ? ` ${word}` : word)), text, sentence.targetWords);
  rated.forEach(([, probability], number) => {
    const element = sentence.targetElements[places[number]];
    if (!element) return;
    element.classList.add("rated");
    element.style.setProperty("--doubt", `${Math.round(100 - 100 * probability)}%`);
    element.title = `${Math.round(100 * probability)}% likely to occur in a reference translation`;
  });
}

/** Return a mark for the end of a translation that should be checked. */
function checkMark({ confidence }) {
  const mark = document.createElement("span");
  mark.className = "cut";
  mark.textContent = `check: ${Math.round(100 * confidence)}%`;
  mark.title = "Probability that this is a good translation";
  return mark;
}

/** Return a mark for the end of a translation that reached its length limit. */
function cutMark() {
  const mark = document.createElement("span");
  mark.className = "cut";
  mark.textContent = "cut off";
  mark.title = "The model reached its length limit before the end of the sentence.";
  return mark;
}

/** Return an element whose writing direction depends only on its text. */
function isolated(text, name) {
  const element = document.createElement(name);
  element.dir = "auto";
  element.textContent = text;
  return element;
}
