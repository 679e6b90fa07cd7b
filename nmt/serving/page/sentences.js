// Shown sentences: their words as elements, and marks on words that attend to each other.
// Every text becomes a text node, so that no text is parsed as HTML.

import { attentionOfWords, splitWords, wordsOfTokens } from "./words.js";

const LEAST_MARK = 0.12; // least weight of a marked word, relative to the strongest
const MOST_IN_CAPTION = 3; // most words in the caption
const SPACELESS = /[\p{sc=Han}\p{sc=Hira}\p{sc=Kana}\p{sc=Thai}\p{sc=Laoo}\p{sc=Khmr}\p{sc=Mymr}\p{sc=Tibt}]/u;

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
    const other = side === "target" ? this.mirror : this.target;
    const linked = weights
      .map((weight, place) => ({ weight, element: elements[place], word: wordOf(sentence, side, place) }))
      .filter(({ weight }) => weight > 0 && weight >= LEAST_MARK * strongest)
      .sort((left, right) => right.weight - left.weight);
    for (const link of linked) if (link.element) this.#set(link.element, "linked", link.weight / strongest);
    const first = isolated(element.textContent, "strong", (side === "target" ? this.target : this.mirror).lang);
    const parts = linked.slice(0, MOST_IN_CAPTION).flatMap((link, place) => [
      place ? ", " : "", isolated(link.word, "strong", other.lang), ` ${Math.round(100 * link.weight)}%`,
    ]);
    this.caption.replaceChildren(first, side === "target" ? " ← " : " → ", ...parts);
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

  #explain(element, sentence) {
    const reason = sentence.chosen ? "attention is shown for the best translation only" : "no attention";
    this.caption.replaceChildren(isolated(element.textContent, "strong", this.target.lang), `: ${reason}`);
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

/** Return whether a word of the text is one of the unknown words, or within one in a script without spaces. */
function isUnknown(word, unknown) {
  const folded = fold(word);
  return folded !== "" && unknown.some((words) => words.split(/\s+/u).map(fold).some((part) => part === folded
    || (SPACELESS.test(folded) && part !== "" && (part.includes(folded) || folded.includes(part)))));
}

/** Return the letters, vowel signs and digits of a text, without case and accents. */
function fold(text) {
  return text.normalize("NFKD").toLowerCase().replace(/[\u0300-\u036f]|[^\p{L}\p{M}\p{N}]/gu, "");
}

/** Colour the words of a translation by their probability of occurring in a reference, and give it in a tooltip. */
function showDoubts(sentence, text) {
  const rated = sentence.translations[sentence.chosen]?.words ?? [];
  const places = wordsOfTokens(rated.map(([word], number) => (number ? ` ${word}` : word)), text, sentence.targetWords);
  const lowest = new Map(); // by element: a word of the page may be several characters that the service rates
  rated.forEach(([, probability], number) => {
    const element = sentence.targetElements[places[number]];
    if (element) lowest.set(element, Math.min(probability, lowest.get(element) ?? 1));
  });
  for (const [element, probability] of lowest) {
    element.classList.add("rated");
    element.style.setProperty("--doubt", `${Math.round(100 - 100 * probability)}%`);
    element.title = `${Math.round(100 * probability)}% likely to occur in a reference translation`;
  }
}

/** Return a mark for the end of a translation that should be checked. */
function checkMark({ confidence }) {
  return englishMark(`check: ${Math.round(100 * confidence)}%`, "Probability that this is a good translation");
}

/** Return a mark for the end of a translation that reached its length limit. */
function cutMark() {
  return englishMark("cut off", "The model reached its length limit before the end of the sentence.");
}

function englishMark(text, title) {
  const mark = document.createElement("span");
  Object.assign(mark, { className: "cut", lang: "en", dir: "ltr", textContent: text, title });
  return mark;
}

/** Return an element whose writing direction depends only on its text. */
export function isolated(text, name, lang) {
  const element = document.createElement(name);
  element.dir = "auto";
  element.lang = lang;
  element.textContent = text;
  return element;
}
