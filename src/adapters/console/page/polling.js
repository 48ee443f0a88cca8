// The live view of a room without a WebSocket: asks for the events since the last answer, again and again.

// `onFrame` gets each event, `onLive()` is called with each answer, and `onEnd()` when one does not come.
export function polling({ room, after, as, onFrame, onLive, onEnd }) {
  const stopping = new AbortController();
  const { signal } = stopping;
  let position = { after: after() };
  let isFirst = true;

  async function ask() {
    const query = new URLSearchParams({ room, ...position, ...(as() === null ? {} : { as: as() }) });
    const response = await fetch(`/api/live/poll?${query}`, { cache: 'no-store', signal });
    if (!response.ok) throw new Error(response.statusText);
    const { events, ...next } = await response.json();
    position = next;
    onLive();
    // A later `hello` would hide that the events after it are new.
    for (const event of events) if (!signal.aborted && (isFirst || event.event !== 'hello')) onFrame(event);
    isFirst = false;
  }

  async function run() {
    while (!signal.aborted) await ask();
  }
  run().catch(() => signal.aborted || onEnd());
  return { stop: () => stopping.abort() };
}
