// Requests to the service that sent the page, and what went wrong with them.

const SILENT = "The service does not answer.";
const BUSY = "The service is overloaded.";
const SECONDS_OF_SILENCE = 5;
const LONGEST_WAIT = 60;

/** A request without a translation: why, and when to send it again. */
export class Failure extends Error {
  constructor(message, { needsKey = false, retrySeconds = null } = {}) {
    super(message);
    this.needsKey = needsKey;
    this.retrySeconds = retrySeconds; // null: the same request would fail again
  }
}

/** Send a request, a POST if it has a body, and return the JSON of the answer.
 *
 * Throws Failure, or the AbortError of the signal.
 */
export async function ask(path, { body, signal } = {}) {
  const options = { signal, cache: "no-store", headers: { Accept: "application/json" } };
  if (body) {
    Object.assign(options, { method: "POST", body: JSON.stringify(body) });
    options.headers["Content-Type"] = "application/json";
  }
  let response;
  let answer;
  try {
    response = await fetch(path, options);
    answer = await response.text();
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Failure(SILENT, { retrySeconds: SECONDS_OF_SILENCE });
  }
  const json = parse(answer);
  if (response.ok && json !== null) return json;
  if (response.ok) throw new Failure("The service sent an answer that is not JSON.");
  const said = [json?.error, json?.detail].filter((each) => typeof each === "string").join(". ");
  const message = said || `The service failed with status ${response.status}.`;
  if (response.status === 503 || response.status === 429) {
    throw new Failure(BUSY, { retrySeconds: secondsOf(response.headers.get("Retry-After")) });
  }
  throw new Failure(message, { needsKey: /API key/.test(json?.error) });
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Return the seconds of the header Retry-After, whole and from 1 to 60; 2 if it holds no number. */
function secondsOf(header) {
  const seconds = Number.parseFloat(header ?? "");
  return Number.isFinite(seconds) ? Math.min(Math.max(Math.ceil(seconds), 1), LONGEST_WAIT) : 2;
}
