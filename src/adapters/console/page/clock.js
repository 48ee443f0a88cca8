// The server's clock, as far as its frames tell: latency only makes it look late, so the latest estimate wins.

let ahead = null;

// What a frame's `at` says about the server's clock.
export function heard(at) {
  const offset = Date.parse(at) - Date.now();
  if (Number.isFinite(offset) && (ahead === null || offset > ahead)) ahead = offset;
}

export function forget() {
  ahead = null;
}

// Milliseconds since 1970 on the server.
export const serverNow = () => Date.now() + (ahead ?? 0);
