// Tells the server that this person is typing, so that others see it. The server forgets it after a few seconds.

const EVERY_MS = 3000;

// `tell(room, isTyping)` tells the server, and `now()` is a time in milliseconds.
export function typing(tell, now = () => performance.now()) {
  let told = null; // { room, at } of what the server was told last

  function stop() {
    if (!told) return;
    tell(told.room, false);
    told = null;
  }

  // `text` is what stands in the message field of a room now.
  function typed(room, text) {
    if (told?.room !== room || !text.trim()) stop();
    if (!text.trim() || (told && now() - told.at < EVERY_MS)) return;
    told = { room, at: now() };
    tell(room, true);
  }

  return { typed, stop };
}
