// The live connection to one room. It resumes after the last event seen, and reconnects when it is lost.

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 20_000;

// `after()` returns the seq to resume from, and `as()` the name of who watches, or null if the server knows it. `onFrame` gets each frame. `onChange` gets "connecting", "live" or "lost", with the time of the next
// attempt. `probe(wasOpen)` is called when a connection has ended or could not be opened, because a WebSocket does not say why.
export function connect({ room, after, as, onFrame, onChange, probe }) {
  let socket = null;
  let timer = null;
  let failures = 0;
  let closed = false;

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
        onChange('live', null);
      }
      if (frame && typeof frame.event === 'string') onFrame(frame);
    };
    current.onclose = () => {
      if (current !== socket || closed) return;
      probe(opened);
      retryLater();
    };
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
    if (closed || socket) return;
    failures = 0;
    open();
  }

  function drop() {
    const old = socket;
    socket = null;
    if (old) {
      old.close();
      retryLater();
    }
  }

  // Connects anew, because something of the address has changed.
  function renew() {
    const old = socket;
    if (!old) return;
    socket = null;
    old.close();
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
      socket?.close();
      socket = null;
    },
  };
}
