// The live connection to one room. It resumes after the last event seen, and reconnects when it is lost.

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 20_000;
// So many WebSockets in a row must fail before events are asked for without one.
const ASK_AFTER = 2;
// Some proxies leave the request for one unanswered.
const OPEN_WITHIN_MS = 10_000;

// `after()` returns the seq to resume from, and `as()` the name of who watches, or null if the server knows it. `onFrame` gets each frame. `onChange` gets "connecting", "live", "asking" (live, but without a WebSocket) or "lost", with the time of the next
// attempt. `probe(wasOpen)` is called when a connection has ended or could not be opened, because a WebSocket does not say why.
export function connect({ room, after, as, onFrame, onChange, probe }) {
  let socket = null;
  let timer = null;
  let failures = 0;
  let closed = false;
  let asking = null; // instead of a WebSocket

  function open() {
    clearTimeout(timer);
    timer = null;
    if (closed) return;
    const scheme = location.protocol === 'https:' ? 'wss' : 'ws';
    const query = new URLSearchParams({ room, after: after(), ...(as() === null ? {} : { as: as() }) });
    const url = `${scheme}://${location.host}/api/live?${query}`;
    const current = new WebSocket(url);
    let opened = false;
    socket = current;
    setTimeout(() => opened || current.close(), OPEN_WITHIN_MS);
    current.onopen = () => {
      opened = true;
    };
    current.onmessage = message => {
      if (current !== socket) return;
      let frame;
      try {
        frame = JSON.parse(message.data);
      } catch {
        return;
      }
      if (frame?.event === 'hello') {
        failures = 0;
        stopAsking();
        onChange('live', null);
      }
      if (frame && typeof frame.event === 'string') onFrame(frame);
    };
    current.onclose = () => {
      if (current !== socket || closed) return;
      probe(opened);
      retryLater();
      if (!opened && failures >= ASK_AFTER) ask().catch(() => {}); // without the server there is no module either
    };
  }

  // Some proxies pass on no WebSockets. If the server answers without one, no more are tried until the connection is lost.
  async function ask() {
    const { polling } = await import('./polling.js');
    if (closed || asking) return;
    const mine = (asking = polling({
      room,
      after,
      as,
      onFrame,
      onLive() {
        clearTimeout(timer);
        const old = socket;
        socket = null;
        old?.close();
        onChange('asking', null);
      },
      onEnd() {
        if (asking !== mine) return;
        asking = null;
        clearTimeout(timer);
        if (!socket) retryLater();
      },
    }));
  }

  function stopAsking() {
    const old = asking;
    asking = null;
    old?.stop();
  }

  function retryLater() {
    socket = null;
    const maxPause = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** failures);
    failures += 1;
    // Jitter, so that windows do not all reconnect to a restarted server at the same time.
    const pause = maxPause * (0.5 + Math.random() / 2);
    onChange('lost', Date.now() + pause);
    timer = setTimeout(open, pause);
  }

  function reconnect() {
    if (closed || socket || asking) return;
    failures = 0;
    open();
  }

  function drop() {
    const old = socket;
    socket = null;
    if (old || asking) {
      stopAsking();
      old?.close();
      retryLater();
    }
  }

  // Connects anew, because something of the address has changed.
  function renew() {
    const old = socket;
    if (!old && !asking) return;
    socket = null;
    stopAsking();
    old?.close();
    open();
  }

  const onVisible = () => document.visibilityState === 'visible' && reconnect();
  addEventListener('online', reconnect);
  addEventListener('offline', drop);
  document.addEventListener('visibilitychange', onVisible);
  onChange('connecting', null);
  open();

  return {
    reconnect,
    renew,
    close() {
      closed = true;
      clearTimeout(timer);
      removeEventListener('online', reconnect);
      removeEventListener('offline', drop);
      document.removeEventListener('visibilitychange', onVisible);
      stopAsking();
      socket?.close();
      socket = null;
    },
  };
}
