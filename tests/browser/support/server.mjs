// The real server, with a fresh store, on a free loopback port.

import { spawn } from 'node:child_process';
import { createWriteStream } from 'node:fs';
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const PROGRAM = process.env.TERTULIA_PROGRAM ?? join(resolve(process.env.CARGO_TARGET_DIR ?? join(ROOT, 'target')), 'debug', 'tertulia');

// Quick answers, and no lull that comes while a test does something else.
const SETTINGS = {
  TERTULIA__SERVER__LISTEN: '127.0.0.1:0',
  TERTULIA__MODELS__REHEARSAL__PACE: '0.01',
  TERTULIA__COMPANION_DEFAULTS__TEXT_LULL_TIMEOUT: '3600',
  TERTULIA__TURN_TAKING__TURN_DELAY_SECS: '0.1',
};

// A refusal of the API.
class Refusal extends Error {
  constructor(status, detail) {
    super(`${status}: ${detail}`);
    this.status = status;
  }
}

export async function startServer(settings = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'tertulia-browser-'));
  await chmod(folder, 0o700);
  const env = { PATH: process.env.PATH, ...SETTINGS, TERTULIA__STORAGE__PATH: join(folder, 'data'), ...settings };
  const child = spawn(PROGRAM, [], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const log = join(folder, 'log');
  child.stderr.pipe(createWriteStream(log));
  const ended = new Promise(done => child.once('close', done));
  child.once('error', () => {});
  const ready = new Promise(done => {
    const lines = createInterface({ input: child.stdout });
    lines.on('line', line => line.startsWith('ready ') && done(line.slice('ready '.length)));
    lines.on('close', () => done(null));
  });
  const url = await ready;
  if (!url) throw new Error(`${PROGRAM} did not start:\n${(await readFile(log, 'utf8').catch(() => '')) || 'build it first, with cargo build'}`);

  const token = settings.TERTULIA__SERVER__ADMIN_TOKEN;

  async function call(method, path, body, more = {}) {
    const headers = token ? { authorization: `Bearer ${token}`, ...more } : more;
    const response = await fetch(url + path, { method, headers: body === undefined ? headers : { 'content-type': 'application/json', ...headers }, body: body === undefined ? undefined : JSON.stringify(body) });
    const text = await response.text();
    if (!response.ok) throw new Refusal(response.status, text);
    return text ? JSON.parse(text) : null;
  }

  let rooms = 0;
  return {
    url,
    token,
    call,
    // Creates a room. Ids in `externals` are companions that the test plays.
    async room({ id, guild = 'home', companions = [], externals = [] } = {}) {
      rooms += 1;
      const room = id ?? `room-${rooms}`;
      await call('PUT', `/api/rooms/${room}`, { guild, companions: [...companions, ...externals.map(one => ({ external: true, ...(typeof one === 'string' ? { id: one } : one) }))] });
      return room;
    },
    say: (room, text, from = 'Ben') => call('POST', `/api/rooms/${room}/messages`, { from, text, id: crypto.randomUUID() }).then(({ seq }) => seq),
    async stop() {
      child.kill('SIGTERM');
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}
