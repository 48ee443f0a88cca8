// What the browser keeps: for this window (typed text, messages on their way) or for all of them (names, the last room).

const PREFIX = 'tertulia.';

// Private windows may have no storage; then nothing is kept and nothing breaks.
function read(storage, key, fallback) {
  try {
    const text = storage().getItem(PREFIX + key);
    return text === null ? fallback : JSON.parse(text);
  } catch {
    return fallback;
  }
}

function write(storage, key, value) {
  try {
    if (value === null || value === undefined || value === '') storage().removeItem(PREFIX + key);
    else storage().setItem(PREFIX + key, JSON.stringify(value));
  } catch {
    // Full or forbidden: see above.
  }
}

const here = () => sessionStorage;
const everywhere = () => localStorage;

export const recall = (key, fallback = null) => read(here, key, fallback);
export const keep = (key, value) => write(here, key, value);
export const recallAll = (key, fallback = null) => read(everywhere, key, fallback);
export const keepAll = (key, value) => write(everywhere, key, value);
