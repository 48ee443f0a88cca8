// The words for triggers, reasons, tempers and times.

const TRIGGERS = {
  direct_address: 'was addressed',
  turn: 'somebody had just spoken',
  interjection: 'enough was said',
  lull: 'it went quiet',
};

const REASONS = {
  model_yes: 'the model said yes',
  model_no: 'the model said no',
  unreadable: 'the answer was neither yes nor no',
  external: 'decided outside',
  other_addressed: 'meant for somebody else',
  budget: 'over budget',
  unpostable: 'nothing can be posted here',
  loop_guard: 'companions had talked long enough',
  closed: 'had closed',
  paused: 'paused',
  overflow: 'too much to read',
  stale: 'too long ago',
};

// Reasons for which nobody was asked; the last four settle what was heard, whatever the moment.
const UNASKED = ['other_addressed', 'budget', 'unpostable', 'loop_guard', 'closed', 'paused', 'overflow', 'stale'];
const WHENEVER = ['closed', 'paused', 'overflow', 'stale'];

// Why one of those who wanted to speak was chosen.
const SELECTIONS = {
  named: 'was named',
  only: 'only one who wanted to',
  important: 'most important',
  patient: 'as important, spoke least recently',
  first: 'as important, first by name',
  named_important: 'was named, and most important',
  named_patient: 'was named, and spoke least recently',
  named_first: 'was named, and first by name',
};

// The stages of closing: what the companion does, and how the step to each is told.
const STAGES = {
  none: '',
  'pre-closing': 'preparing to end',
  closing: 'closing',
  terminal: 'closed',
};
const STEPS = {
  none: 'goes on after all',
  'pre-closing': 'prepares to end',
  closing: 'is ready to say goodbye',
  terminal: 'has closed',
};
const CAUSES = {
  max_turns: 'this talk has had its turns',
  repetition: 'the talk goes in circles',
  direct_address: 'called by name',
  reopen_after: 'people went on talking',
  new_episode: 'a new talk began',
};

// What became of a message for one companion.
const OUTCOMES = {
  answered: 'answered it',
  speaking: 'is about to answer it',
  failed: 'wanted to answer it',
  silent: 'stayed silent on it',
  waiting: 'has not decided about it yet',
  own: 'said it',
  taken_back: 'never got to answer it',
  cleared: 'never got to answer it',
  left: 'never got to answer it',
  absent: 'was not there',
  set_aside: 'never considered it',
  unknown: 'is not told of',
};

// Why messages were left out after a downtime.
const MISSING = {
  too_many: 'there were too many',
  too_old: 'they are too old',
  refused: 'the bot may not read them',
  nothing_shown: 'they are not shown to the bot',
  unreachable: 'they could not be asked for',
};

const NUMBERS = ['no', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten', 'eleven', 'twelve'];

const ERRORS = {
  timeout: 'the model did not answer in time',
  unreachable: 'the model could not be reached',
  left_alone: 'the model failed several times in a row, and is left alone for a while',
  overloaded: 'the model is overloaded',
  taken_back: 'all that it would have answered was taken back',
};

export const TEMPERS = ['very_quiet', 'quiet', 'average', 'eager', 'very_eager'];

const plain = code => String(code ?? '').replaceAll('_', ' ');

export const missing = code => MISSING[code] ?? plain(code);
export const outcome = code => OUTCOMES[code] ?? plain(code);
export const trigger = code => TRIGGERS[code] ?? plain(code);
export const reason = code => REASONS[code] ?? plain(code);
// A reply that failed after its first words was broken off.
export const failure = (code, begun, isExternal) => (begun && code === 'unreachable' ? 'the model broke off' : error(code, isExternal));
// How much a companion wants to speak, 0 to 10.
export const importance = value => (Number.isInteger(value) ? String(value) : value.toFixed(1));
export const wasAsked = decision => !UNASKED.includes(decision.reason);
// Why a decision was made, if the moment had a part in it.
export const occasion = decision => (WHENEVER.includes(decision.reason) ? '' : trigger(decision.trigger));
// Behind an external companion is no model, but the program that plays it.
export const error = (code, isExternal) => (isExternal && code === 'timeout' ? 'the program that plays it did not answer in time' : null) ?? ERRORS[code] ?? (code ? plain(code) : 'no answer');
export const selection = code => SELECTIONS[code] ?? plain(code);
export const stage = code => STAGES[code] ?? plain(code);
const MANY = { has: 'have', is: 'are', goes: 'go', prepares: 'prepare' };
// A step from one stage of closing to another, and why; what its own vote said needs no other reason.
export function step(to, cause, many) {
  const what = to === 'none' && cause !== 'state' ? 'is open again' : (STEPS[to] ?? plain(to));
  const said = many ? what.replace(/^\S+/u, verb => MANY[verb] ?? verb) : what;
  return CAUSES[cause] ? `${said}: ${CAUSES[cause]}` : said;
}
// As people write small numbers in a sentence.
export const inWords = n => NUMBERS[n] ?? n.toLocaleString();
export const times = n => (n === 1 ? 'once' : n === 2 ? 'twice' : `${inWords(n)} times`);
export const temper = code => plain(code) || 'average';

const clock = new Intl.DateTimeFormat([], { hour: '2-digit', minute: '2-digit' });
const toTheSecond = new Intl.DateTimeFormat([], { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const exact = new Intl.DateTimeFormat([], { dateStyle: 'medium', timeStyle: 'medium' });
const dayName = new Intl.DateTimeFormat([], { weekday: 'long', day: 'numeric', month: 'long', year: 'numeric' });
const dayCode = new Intl.DateTimeFormat('en-CA', { year: 'numeric', month: '2-digit', day: '2-digit' });

const date = at => {
  const parsed = new Date(at);
  return Number.isNaN(parsed.getTime()) ? null : parsed;
};
const format = (style, at) => {
  const parsed = date(at);
  return parsed ? style.format(parsed) : '';
};

export const time = at => format(clock, at);
export const second = at => format(toTheSecond, at);
export const moment = at => format(exact, at);
export const dayOf = at => format(dayCode, at);

export function day(at, now) {
  const code = dayOf(at);
  if (code === dayOf(now)) return 'today';
  if (code === dayOf(now - 86_400_000)) return 'yesterday';
  return format(dayName, at);
}

export function seconds(ms) {
  const s = Math.max(0, ms) / 1000;
  if (s < 10) return `${s.toFixed(1)} s`;
  if (s < 100) return `${Math.round(s)} s`;
  return `${Math.round(s / 60)} min`;
}

export function until(at, now) {
  const ms = new Date(at).getTime() - now;
  if (!Number.isFinite(ms) || ms <= 0) return 'any moment now';
  return ms < 5_400_000 ? `in ${seconds(ms)}` : `in ${Math.round(ms / 3_600_000)} h`;
}

export function ago(at, now) {
  const parsed = date(at);
  if (!parsed) return '';
  const s = Math.max(0, (now - parsed.getTime()) / 1000);
  if (s < 2) return 'now';
  if (s < 90) return `${Math.floor(s)} s ago`;
  if (s < 5400) return `${Math.round(s / 60)} min ago`;
  if (s < 129_600) return `${Math.round(s / 3600)} h ago`;
  return `${Math.round(s / 86_400)} days ago`;
}

export const count = (n, one, many = `${one}s`) => `${n.toLocaleString()} ${n === 1 ? one : many}`;
