// The live connection to one room: resumes after the last event seen, and comes back by itself when it is lost.

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 20_000;

// `after()` gives the number to resume from; `onFrame` gets each object; `onChange` gets "connecting", "live" or "lost"
// with the time of the next attempt; `probe` is asked when a connection could not be opened, as the socket says no reason.
export function connect({ room, after, onFrame, onChange, probe }) {
  let socket = null;
  let timer = null;
  let failures = 0;
  let closed = false;

  function open() {
    clearTimeout(timer);
    timer = null;
    if (closed) return;
    const scheme = location.protocol === 'https:' ? 'wss' : 'ws';
    const url = `${scheme}://${location.host}/api/live?room=${encodeURIComponent(room)}&after=${after()}`;
    const mine = new WebSocket(url);
    let opened = false;
    socket = mine;
    mine.onopen = () => {
      opened = true;
    };
    mine.onmessage = message => {
      if (mine !== socket) return;
      let frame;
      try {
        frame = JSON.parse(message.data);
      } catch {
        return;
      }
      if (frame?.event === 'hello') {
        failures = 0;
        onChange('live', null);
      }
      if (frame && typeof frame.event === 'string') onFrame(frame);
    };
    mine.onclose = () => {
      if (mine !== socket || closed) return;
      if (!opened) probe?.();
      wait();
    };
  }

  function wait() {
    socket = null;
    const longest = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** failures);
    failures += 1;
    // Jitter, so that a restarted server does not meet all windows at once.
    const pause = longest * (0.5 + Math.random() / 2);
    onChange('lost', Date.now() + pause);
    timer = setTimeout(open, pause);
  }

  function again() {
    if (closed || socket) return;
    failures = 0;
    open();
  }

  function drop() {
    const old = socket;
    socket = null;
    if (old) {
      old.close();
      wait();
    }
  }

  const shown = () => document.visibilityState === 'visible' && again();
  addEventListener('online', again);
  addEventListener('offline', drop);
  document.addEventListener('visibilitychange', shown);
  onChange('connecting', null);
  open();

  return {
    again,
    close() {
      closed = true;
      clearTimeout(timer);
      removeEventListener('online', again);
      removeEventListener('offline', drop);
      document.removeEventListener('visibilitychange', shown);
      socket?.close();
      socket = null;
    },
  };
}
