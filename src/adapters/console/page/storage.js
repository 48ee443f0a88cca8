// Stores data in the browser: for this window (typed text, unsent messages) or for all windows (names, the last room).

const PREFIX = 'tertulia.';

// Private windows may have no storage. Then nothing is stored, and the page works all the same.
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
    // Storage is full or forbidden: see above.
  }
}

const thisWindow = () => sessionStorage;
const allWindows = () => localStorage;

export const load = (key, fallback = null) => read(thisWindow, key, fallback);
export const store = (key, value) => write(thisWindow, key, value);
export const loadForAll = (key, fallback = null) => read(allWindows, key, fallback);
export const storeForAll = (key, value) => write(allWindows, key, value);
// Calls `run` when another window has stored something else under the key.
export const changedElsewhere = (key, run) => addEventListener('storage', event => event.key === PREFIX + key && run());
