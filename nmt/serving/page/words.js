// Words of a sentence and its translation, and the attention between them.
// A span is a pair {start, end} of UTF-16 offsets into a text.

const BOUNDARY_TOKENS = new Set(["<s>", "</s>", "<pad>"]);
const UNKNOWN = "<unk>";
const WORD_OR_MARKS = /[\p{L}\p{M}\p{N}\u200c\u200d]+(?:['’][\p{L}\p{M}\p{N}\u200c\u200d]+)*|[^\s\p{L}\p{M}\p{N}]+/gu;
// Most cells of the table that aligns characters. A text of 2,000 characters takes a few milliseconds.
const MOST_CELLS = 4_000_000;

/** Return the spans of the words and punctuation marks of a text. */
export function splitWords(text) {
  if (!Intl.Segmenter) {
    return [...text.matchAll(WORD_OR_MARKS)].map((match) => ({ start: match.index, end: match.index + match[0].length }));
  }
  // The segmenter also finds words in scripts without spaces, such as Japanese and Thai.
  const words = [];
  let joins = false; // whether the next punctuation mark belongs to the span before it
  for (const { segment, index, isWordLike } of new Intl.Segmenter(undefined, { granularity: "word" }).segment(text)) {
    const end = index + segment.length;
    if (!segment.trim()) {
      joins = false;
    } else if (isWordLike || !joins) {
      words.push({ start: index, end });
      joins = !isWordLike;
    } else {
      words.at(-1).end = end;
    }
  }
  return words;
}

/** Return the attention between words, computed from the attention between tokens; null without attention.
 *
 * The row of a target word is the mean of the rows of its tokens; the columns of a source word's tokens are summed.
 * Attention to bos and eos is left out, so a row sums to at most 1.
 *
 * sentence: source_tokens (S), target_tokens (T), attention [T][S].
 * Result: [target words][source words]; the row of a word without tokens is null.
 */
export function attentionOfWords(sentence, source, sourceWords, target, targetWords) {
  const { attention, source_tokens: sourceTokens, target_tokens: targetTokens } = sentence;
  if (!Array.isArray(attention) || attention.length !== targetTokens.length) return null;
  const columns = wordsOfTokens(sourceTokens, source, sourceWords);
  const rows = wordsOfTokens(targetTokens, target, targetWords);
  const sums = targetWords.map(() => null);
  const counts = targetWords.map(() => 0);
  rows.forEach((word, row) => {
    if (word === null) return;
    sums[word] ??= sourceWords.map(() => 0);
    counts[word] += 1;
    columns.forEach((column, place) => {
      if (column !== null) sums[word][column] += attention[row][place];
    });
  });
  return sums.map((sum, word) => sum?.map((weight) => weight / counts[word]) ?? null);
}

/** Return the word index of each token; null for bos, eos, and tokens for which no word is left.
 *
 * Normalization may have changed case, accents and punctuation, so the characters of tokens and text are aligned. A
 * token without a character in the text, such as <unk>, gets the first free word between the words of its neighbours.
 */
export function wordsOfTokens(tokens, text, words) {
  // Spaces are aligned too: they show which of two equal words is next to an unknown word.
  const letters = []; // [folded character, token]
  tokens.forEach((token, index) => {
    if (BOUNDARY_TOKENS.has(token)) return;
    if (token === UNKNOWN) letters.push([" ", index]);
    else for (const [letter] of foldedLetters(token)) letters.push([letter, index]);
  });
  const textLetters = foldedLetters(text);
  const votes = tokens.map(() => new Map());
  for (const [letter, place] of matches(letters.map(([letter]) => letter), textLetters.map(([letter]) => letter))) {
    const offset = textLetters[place][1];
    const word = words.findIndex(({ start, end }) => start <= offset && offset < end);
    const vote = votes[letters[letter][1]];
    if (word >= 0) vote.set(word, (vote.get(word) ?? 0) + 1);
  }
  // The word with most letters of the token; of two, the first.
  const result = votes.map((vote) => [...vote].sort((a, b) => b[1] - a[1] || a[0] - b[0])[0]?.[0] ?? null);
  const taken = new Set(result);
  let previous = -1;
  result.forEach((word, index) => {
    if (word === null && !BOUNDARY_TOKENS.has(tokens[index])) {
      const next = result.slice(index + 1).find((later) => later !== null) ?? words.length;
      for (let free = previous + 1; free < next && result[index] === null; free += 1) {
        if (!taken.has(free)) result[index] = free;
      }
      taken.add(result[index]);
    }
    previous = result[index] ?? previous;
  });
  return result;
}

/** Return pairs [letter, offset] of a text: letters without accents and case, and a space for white space.
 *
 * Vowel signs, as in Hindi and Thai, count as letters.
 */
function foldedLetters(text) {
  const letters = [];
  let offset = 0;
  for (const character of text) {
    const folded = character.normalize("NFKD").toLowerCase().replace(/[\u0300-\u036f]/gu, "");
    for (const letter of folded) {
      if (letter.trim()) letters.push([letter, offset]);
      else if (letters.at(-1)?.[0] !== " ") letters.push([" ", offset]);
    }
    offset += character.length;
  }
  return letters;
}

/** Return pairs (i, j) of a longest common subsequence of two lists of letters. */
function matches(left, right) {
  const pairs = [];
  let start = 0;
  while (start < left.length && start < right.length && left[start] === right[start]) pairs.push([start, start++]);
  let [rows, columns] = [left.length, right.length];
  while (rows > start && columns > start && left[rows - 1] === right[columns - 1]) pairs.push([--rows, --columns]);
  const [height, width] = [rows - start, columns - start];
  if (!height || !width || height * width > MOST_CELLS) return pairs;
  const lengths = new Uint16Array((height + 1) * (width + 1)); // lengths for all pairs of suffixes
  const at = (i, j) => i * (width + 1) + j;
  for (let i = height - 1; i >= 0; i -= 1) {
    for (let j = width - 1; j >= 0; j -= 1) {
      lengths[at(i, j)] = left[start + i] === right[start + j]
        ? lengths[at(i + 1, j + 1)] + 1
        : Math.max(lengths[at(i + 1, j)], lengths[at(i, j + 1)]);
    }
  }
  for (let i = 0, j = 0; i < height && j < width;) {
    if (left[start + i] === right[start + j]) pairs.push([start + i++, start + j++]);
    else if (lengths[at(i + 1, j)] >= lengths[at(i, j + 1)]) i += 1;
    else j += 1;
  }
  return pairs;
}
