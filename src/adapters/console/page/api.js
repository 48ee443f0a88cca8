// The server's HTTP interface, one function for each request.

import { has, loadLater, subject, t } from './texts.js';
import { time, upper } from './words.js';

// A refusal, in the words of its code, or in the server's own in English. Status 0 means that there was no answer.
export class Problem extends Error {
  constructor({ title, detail, status, field = '', why = null }) {
    const { code, ...values } = why ?? {};
    // Times are those of this browser.
    if (values.at) values.at = time(values.at);
    const about = has(`refusals.${code}`) ? t(`refusals.${code}`, values) : detail;
    super(about ? upper(subject(field) + about) : title || t('problems.no_reason'));
    this.status = status ?? 0;
    // Where it is, and what is wrong there.
    this.field = field;
    this.about = about;
    // A code, and values.
    this.why = why;
  }

  // Whether the same request, unchanged, may succeed later.
  get isTransient() {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

// Where somebody goes who is not signed in, or not any more. Null: the request fails.
let entrance = '/signin';
export const enterAt = path => (entrance = path);

export async function call(method, path, body) {
  const isFile = body instanceof Blob;
  let response;
  try {
    response = await fetch(path, {
      method,
      headers: body === undefined ? {} : { 'content-type': isFile ? 'application/octet-stream' : 'application/json' },
      body: body === undefined || isFile ? body : JSON.stringify(body),
      cache: 'no-store',
      // A deletion may be sent while the page is left.
      keepalive: method === 'DELETE',
    });
  } catch {
    throw new Problem({ detail: t('problems.unreachable'), status: 0 });
  }
  if (response.status === 401 && entrance) {
    location.assign(entrance);
    return new Promise(() => {});
  }
  const text = await response.text().catch(() => '');
  let answer = null;
  try {
    answer = text ? JSON.parse(text) : {};
  } catch {
    answer = null;
  }
  // The readiness check answers 503 with a useful body.
  if (!response.ok && path !== '/readyz') {
    if (answer?.why) await loadLater();
    throw new Problem({ title: response.statusText, ...answer, status: response.status });
  }
  return answer ?? {};
}

export const ask = call;

const query = fields => {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined && value !== null);
  return given.length ? `?${new URLSearchParams(given)}` : '';
};
export const roomPath = (room, rest = '') => `/api/rooms/${encodeURIComponent(room)}${rest}`;

// Larger than the seq of any event, so that the page before it is the newest.
export const NEWEST = Number.MAX_SAFE_INTEGER;

// What the page shows when it is opened comes in one answer.
const opening = new Map([['/api/rooms', 'rooms'], ['/api/companions', 'companions'], ['/readyz', 'readiness'], ['/api/models', 'models'], ['/api/quarantine', 'quarantine']]);
let overview = null;
function first(path) {
  const part = opening.get(path);
  if (!opening.delete(path)) return call('GET', path);
  overview ??= call('GET', '/api/overview');
  return overview.then(answer => answer[part], () => call('GET', path));
}

export const listRooms = () => first('/api/rooms');
export const room = id => call('GET', roomPath(id));
export const putRoom = (room, setup) => call('PUT', roomPath(room), setup);
export const createRoom = setup => call('POST', '/api/rooms', setup);
export const patchRoom = (room, change) => call('PATCH', roomPath(room), change);
// How many messages would be deleted with a room.
export const deletion = room => call('GET', roomPath(room, '/deletion'));
// Hides a room, and deletes it a little later, at `deleted_at`.
export const deleteRoom = room => call('DELETE', roomPath(room));
export const undeleteRoom = room => call('POST', roomPath(room, '/undelete'), {});
export const clearRoom = room => call('POST', roomPath(room, '/clear'), {});
// The newest answer: more of it, or another version of it.
export const extend = (room, seq) => call('POST', roomPath(room, `/messages/${seq}/continue`), {});
export const stand = (room, seq, version) => call('PUT', roomPath(room, `/messages/${seq}/version`), { version });
// A message that a companion drafts for a person.
export const draft = (room, companion, from) => call('POST', roomPath(room, '/drafts'), { companion, from });
// Lets a companion speak next without a vote, or everybody once.
export const speakNext = (room, choice) => call('POST', roomPath(room, '/next'), choice);
export const postMessage = (room, message) => call('POST', roomPath(room, '/messages'), message);
export const editMessage = (room, seq, text) => call('PATCH', roomPath(room, `/messages/${seq}`), { text });
export const messagePath = (room, seq) => roomPath(room, `/messages/${seq}`);
// Sends a DELETE request to this path.
export const remove = path => call('DELETE', path);
// Another statement in the place of the newest message.
export const answerAgain = (room, seq) => call('POST', roomPath(room, `/messages/${seq}/again`), {});
export function history(room, before, limit) {
  const path = roomPath(room, `/history${query({ before, limit })}`);
  const answer = early.get(path) ?? call('GET', path);
  early.delete(path);
  return answer;
}
// Requests the newest messages of the room that will probably be shown, before it is known whether it exists.
const early = new Map();
export function expect(room, limit) {
  const path = roomPath(room, `/history${query({ before: NEWEST, limit })}`);
  early.set(path, call('GET', path));
  early.get(path).catch(() => {});
}
// The messages that have these words, the best first.
export const searchRoom = (room, q) => call('GET', roomPath(room, `/search${query({ q, limit: 100 })}`));
// The reminders of a room, and the time zone of a person.
export const reminders = (room, from) => call('GET', roomPath(room, `/reminders${query({ from })}`));
export const cancelReminder = (room, id) => call('DELETE', roomPath(room, `/reminders/${id}`));
export const setTimeZone = (room, from, zone) => call('PUT', roomPath(room, '/time-zone'), { from, zone });
// What companions remember: notes of a room, and by and about a person.
export const notes = room => call('GET', roomPath(room, '/notes'));
export const notesAbout = (guild, person) => call('GET', `/api/notes${query({ guild, person })}`);
export const correctNote = (room, seq, text) => call('PATCH', roomPath(room, `/notes/${seq}`), { text });
export const eraseNote = (room, seq) => call('DELETE', roomPath(room, `/notes/${seq}`));
export const switchNotes = (guild, on, person) => call('PUT', '/api/notes', { guild, on, person });
export const useNotesAcrossRooms = (guild, across_rooms) => call('PUT', '/api/notes', { guild, across_rooms });
export const roomState = room => call('GET', roomPath(room, '/state'));
export const decisions = (room, after, limit) => call('GET', `/api/decisions${query({ room, after, limit })}`);
export const why = (room, companion, at) => call('GET', `/api/why${query({ room, companion, at })}`);
// What became of a message, for each companion in the room.
export const messageOutcomes = (room, message) => call('GET', `/api/why${query({ room, message })}`);
// Who and what takes part in the voice call of a room. 404: the server has no voice.
export const voice = room => call('GET', roomPath(room, '/voice'));
const voicePath = fields => `/api/voice${query(fields)}`;
export const voiceUrl = fields => `${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}${voicePath(fields)}`;
// Why a voice call is refused, or null: a WebSocket does not say why. 426: only the upgrade is missing.
export const voiceRefusal = fields => call('GET', voicePath(fields)).then(() => null, problem => (problem.status === 426 ? null : problem));
// That a person is typing, or not any more.
export const tellTyping = (room, from, typing) => call('PUT', roomPath(room, '/typing'), { from, typing });
export const stopReply = (room, companion) => call('POST', roomPath(room, `/replies/${encodeURIComponent(companion)}/stop`), {});
export const receptions = (guild, days) => call('GET', `/api/usage/receptions${query({ guild, days })}`);
export const usage = (guild, from) => call('GET', `/api/usage${query({ guild, from })}`);
// `form` is `json`, `markdown` or `html`.
export const exportUrl = (room, form) => `/api/export${query({ room, as: form })}`;
// How much `forget` would delete.
export const forgettable = (guild, person, answers = false) => call('GET', `/api/forget${query({ guild, person, answers })}`);
export const forget = (guild, person, answers) => call('POST', '/api/forget', { guild, person, answers });
export const companions = () => first('/api/companions');
export const companionPath = (id, revision) => `/api/companions/${encodeURIComponent(id)}${query({ revision })}`;
export const companion = id => call('GET', companionPath(id));
// What somebody who makes a companion can choose from.
export const companionOptions = () => call('GET', '/api/companions/options');
export const createCompanion = made => call('POST', '/api/companions', made);
export const changeCompanion = (id, change) => call('PUT', companionPath(id), change);
export const tryCompanion = trial => call('POST', '/api/companions/try', trial);
// What importing a character card would write.
export const previewCard = (file, choices = {}) => call('POST', `/api/cards${query(choices)}`, file);
// Lorebooks, and what is in a lorebook's file.
const bookPath = id => `/api/lorebooks/${encodeURIComponent(id)}`;
export const books = () => call('GET', '/api/lorebooks');
export const book = id => call('GET', bookPath(id));
export const createBook = book => call('POST', '/api/lorebooks', book);
export const changeBook = (id, change) => call('PUT', bookPath(id), change);
export const deleteBook = (id, revision) => call('DELETE', `${bookPath(id)}${query({ revision })}`);
export const readBook = file => call('POST', '/api/lorebooks/read', file);
export const bookUrl = (id, as) => `${bookPath(id)}/file?as=${as}`;
export const cardUrl = (id, as) => `${companionPath(id)}/card?as=${as}`;
// The companion as a file, or why there is none.
export async function cardFile(id, as) {
  const response = await fetch(cardUrl(id, as)).catch(() => null);
  if (response?.ok) return response.blob();
  const answer = await response?.json().catch(() => null);
  if (answer?.why) await loadLater();
  throw new Problem(response ? { ...answer, status: response.status } : { detail: t('problems.unreachable') });
}
// A module of the page that is loaded when it is needed.
export const loaded = module =>
  module.catch(() => {
    throw new Problem({ detail: t('problems.unreachable'), status: 0 });
  });
export const decisionsOf = (companion, limit) => call('GET', `/api/decisions${query({ companion, limit })}`);
// The companion says the first words in a room.
export const greet = (room, companion, text) => call('POST', roomPath(room, '/greeting'), { companion, text });
export const readiness = () => first('/readyz');
export const models = () => first('/api/models');
export const modelNames = server => call('POST', '/api/models/names', server);
export const tryModels = connection => call('POST', '/api/models/try', connection);
export const connectModels = connection => call('PUT', '/api/models', connection);
export const disconnectModels = () => call('DELETE', '/api/models');
export const settings = () => call('GET', '/api/settings');
export const trySettings = (values, about) => call('POST', '/api/settings/try', { values, about });
export const keepSettings = values => call('PATCH', '/api/settings', { values });
export const readSettings = () => call('POST', '/api/settings/read', {});
export const quarantine = () => first('/api/quarantine');
const entryPath = (id, what) => `/api/quarantine/${encodeURIComponent(id)}/${what}`;
export const release = entry => call('POST', entryPath(entry, 'release'), {});
// A server that stands by shows a page of its own, which leads to the one that runs the conversations.
export const leaveStandby = () => call('GET', '/readyz').then(answer => answer.stands_by && location.reload(), () => {});
export const retry = entry => call('POST', entryPath(entry, 'retry'), {});
export const drop = entry => call('POST', entryPath(entry, 'drop'), {});

const invitationPath = (room, id = '') => roomPath(room, `/invitations${id && `/${encodeURIComponent(id)}`}`);
export const invitations = room => call('GET', invitationPath(room));
// `ends` is `day`, `week` or `never`. Only this answer has the link.
export const invite = (room, ends, mostGuests, knowsBefore) => call('POST', invitationPath(room), { ends, most_guests: mostGuests, knows_before: knowsBefore });
// Its guests are out at once.
export const revoke = (room, id) => call('DELETE', invitationPath(room, id));
// The guest is out at once, and leaves a place.
export const removeGuest = (room, id, name) => call('DELETE', `${invitationPath(room, id)}/guests${query({ name })}`);
export const tokens = () => call('GET', '/api/tokens');
export const makeToken = (name, scope) => call('POST', '/api/tokens', { name, scope });
export const endToken = name => call('DELETE', `/api/tokens/${encodeURIComponent(name)}`);

// The room to which a secret invites.
export const lookAtInvitation = secret => call('POST', '/api/invitations/look', { secret });
export const join = (secret, name) => call('POST', '/api/invitations/join', { secret, name });
// The rooms in which this browser is a guest.
export const visits = () => call('GET', '/api/visit');
export const signOut = () => call('POST', '/signout');

// crypto.randomUUID exists on secure origins only, and the console may be served over plain HTTP.
export function newId() {
  if (crypto.randomUUID) return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = [...bytes].map(byte => byte.toString(16).padStart(2, '0')).join('');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}
