// The server's clock, estimated from its frames. Latency only makes it look late, so the highest estimate wins.

let ahead = null;

// Updates the estimate by a frame's `at`.
export function update(at) {
  const offset = Date.parse(at) - Date.now();
  if (Number.isFinite(offset) && (ahead === null || offset > ahead)) ahead = offset;
}

export function reset() {
  ahead = null;
}

// Milliseconds since 1970 on the server.
export const serverNow = () => Date.now() + (ahead ?? 0);
