// Requests to the service of this page, and their errors.

const SILENT = "The service does not answer.";
const BUSY = "The service is overloaded.";
const RETRY_SECONDS = 5; // after no answer
const LONGEST_WAIT = 60; // seconds

/** A failed request: its reason, and when to send it again. */
export class Failure extends Error {
  constructor(message, { needsKey = false, retrySeconds = null } = {}) {
    super(message);
    this.needsKey = needsKey;
    this.retrySeconds = retrySeconds; // null: the same request would fail again
  }
}

/** Send a request (POST if it has a body), and return the JSON of the answer.
 *
 * Throws a Failure, or the AbortError of the signal.
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
    throw new Failure(SILENT, { retrySeconds: RETRY_SECONDS });
  }
  const json = parse(answer);
  if (response.ok && json !== null) return json;
  if (response.ok) throw new Failure("The service sent an answer that is not JSON.");
  const explanation = [json?.error, json?.detail].filter((text) => typeof text === "string").join(". ");
  const message = explanation || `The service failed with status ${response.status}.`;
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

/** Return the whole seconds of the header Retry-After, from 1 to 60; 2 if it has no number. */
function secondsOf(header) {
  const seconds = Number.parseFloat(header ?? "");
  return Number.isFinite(seconds) ? Math.min(Math.max(Math.ceil(seconds), 1), LONGEST_WAIT) : 2;
}
