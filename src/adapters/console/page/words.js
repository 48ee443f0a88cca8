// The words for triggers, reasons, interjection levels, errors and times.

const TRIGGERS = {
  direct_address: 'it was addressed',
  turn: 'someone had just spoken',
  interjection: 'enough messages had arrived',
  lull: 'the conversation paused',
  silence: 'nobody had said anything for long',
  event: 'something happened',
};

const REASONS = {
  model_yes: 'the model said yes',
  model_no: 'the model said no',
  unreadable: 'the answer was neither yes nor no',
  external: 'its external program decided',
  event: 'an event must be acknowledged',
  other_addressed: 'the message addressed someone else',
  budget: 'the budget is used up',
  unpostable: 'it cannot post here',
  loop_guard: 'companions had spoken too often in a row',
  closed: 'it had ended the conversation',
  paused: 'paused',
  cancelled: 'a person asked to stop',
  backchannel: 'somebody only showed that they listen',
  overflow: 'too many messages to read',
  stale: 'the messages were too old',
};

// With these reasons no model was asked. The last six settle messages whatever the trigger.
const UNASKED = ['event', 'other_addressed', 'budget', 'unpostable', 'loop_guard', 'closed', 'paused', 'cancelled', 'backchannel', 'overflow', 'stale'];
const WITHOUT_TRIGGER = ['closed', 'paused', 'cancelled', 'backchannel', 'overflow', 'stale'];

// What the server says about a model names the setting; on the page it is a field.
export const ofModel = detail => detail.replaceAll('base_url', 'the address');

// Why this companion was selected among those that wanted to speak.
const SELECTIONS = {
  named: 'called upon',
  only: 'the only one who wanted to',
  important: 'highest importance',
  patient: 'equally important, spoke least recently',
  first: 'equally important, first in the alphabet',
  named_important: 'called upon, highest importance',
  named_patient: 'called upon, spoke least recently',
  named_first: 'called upon, first in the alphabet',
};

// What a companion is doing, as a label.
const DOINGS = {
  asked: 'considering',
  waiting_its_turn: 'about to speak',
  back_off: 'no answer',
};

// The closing stages as labels, and the step to each stage as a verb phrase after the companion's name.
const STAGES = {
  none: '',
  'pre-closing': 'wrapping up',
  closing: 'ready to say goodbye',
  terminal: 'conversation ended',
};
const STEPS = {
  none: 'is staying in the conversation after all',
  'pre-closing': 'is wrapping up',
  closing: 'is ready to say goodbye',
  terminal: 'has ended the conversation',
};
const CAUSES = {
  max_turns: 'the limit of answers in a conversation is reached',
  repetition: 'the conversation is repeating itself',
  direct_address: 'addressed directly',
  event: 'an event must be acknowledged',
  reopen_after: 'people kept talking',
  new_episode: 'a new conversation began',
};

// What became of a message for one companion, as a verb phrase after the companion's name.
const OUTCOMES = {
  answered: 'answered',
  speaking: 'is about to answer',
  failed: 'tried to answer, but the reply failed',
  silent: 'stayed silent',
  waiting: 'has not decided yet',
  own: 'wrote this message',
  deleted: 'did not answer before the message was deleted',
  cleared: 'did not answer before replies were cancelled',
  left: 'left without answering',
  absent: 'was not in the room',
  dead_letter: 'never considered it: the message could not be handled',
  unknown: 'has no recorded outcome',
};

// Why messages were not read after a downtime.
const MISSING = {
  too_many: 'there were too many',
  too_old: 'they were too old',
  refused: 'the bot is not allowed to read them',
  nothing_shown: 'the bot cannot see them',
  unreachable: 'they could not be fetched',
};

const NUMBERS = ['no', 'one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten', 'eleven', 'twelve'];

const ERRORS = {
  timeout: 'the model did not answer in time',
  unreachable: 'the model could not be reached',
  circuit_open: 'the model failed several times in a row, so calls to it are paused for a while',
  overloaded: 'the model is overloaded',
  key_rejected: 'the API key was rejected',
  unknown_model: 'the model or its address is unknown',
  no_credit: 'the account of the model has no credit',
  out_of_tokens: 'the model spent all its tokens before the first word',
  refused: 'the model refused the request',
  empty: 'the model wrote nothing',
  only_thoughts: 'the model wrote only thoughts; a larger prompt.max_main_answer_tokens leaves room for words',
  no_statement: 'the model wrote a decision, a call of a tool or silence instead of words, also when asked again',
  deleted: 'every message that it would have answered was deleted',
  closed: 'it was paused, left or ended the conversation while it wrote on',
  interrupted: 'it was stopped before a word of it was heard',
  unvoiced: 'its voice could not be made in time',
};

// How it came out that somebody talked into a spoken statement.
const VERDICTS = {
  unducked: 'spoke on, because the talking soon stopped',
  played_out: 'spoke to the end while somebody talked',
  nothing_said: 'paused and spoke on, because no words were heard',
  backchannel: 'paused and spoke on, because people only showed that they listen',
  few_words: 'paused and spoke on, because little was said, and to nobody here',
  noise: 'paused and spoke on, because what was heard counts as noise',
  stop_word: 'stopped at a stop word',
  addressed: 'stopped, because somebody addressed a companion',
  many_words: 'stopped, because somebody talked for long',
  took_too_long: 'stopped, because people did not stop talking',
  stop_pressed: 'was stopped',
  call_ended: 'stopped, because the call ended',
  playback_lost: 'stopped, because its voice was played no further',
  server_stopping: 'stopped, because the server was stopping',
  silenced: 'stopped, because the companions were muted or deafened in the call',
  cancelled: 'stopped, because the statement was not wanted any more',
};

export const INTERJECTION_LEVELS = ['very_quiet', 'quiet', 'average', 'eager', 'very_eager'];

// A code in words, where nothing better is known.
export const spaced = code => String(code ?? '').replaceAll('_', ' ');

export const verdict = code => VERDICTS[code] ?? `was interrupted (${spaced(code)})`;
export const missing = code => MISSING[code] ?? spaced(code);
export const outcome = code => OUTCOMES[code] ?? spaced(code);
export const trigger = code => TRIGGERS[code] ?? spaced(code);
export const reason = code => REASONS[code] ?? spaced(code);
// A reply that failed after its first words stopped midway.
export const failure = (code, begun, isExternal) => (begun && code === 'unreachable' ? 'the model stopped in the middle of its reply' : error(code, isExternal));
// How much a companion wants to speak, 0 to 10.
export const importance = value => (Number.isInteger(value) ? String(value) : value.toFixed(1));
export const wasAsked = decision => !UNASKED.includes(decision.reason);
// The trigger of a decision, unless the decision would have been the same with any trigger.
export const occasion = decision => (WITHOUT_TRIGGER.includes(decision.reason) ? '' : trigger(decision.trigger));
// An external companion has no model: a program answers for it.
export const error = (code, isExternal) => (isExternal && code === 'timeout' ? 'its external program did not answer in time' : null) ?? ERRORS[code] ?? (code ? spaced(code) : 'no answer');
export const selection = code => SELECTIONS[code] ?? spaced(code);
export const doing = code => DOINGS[code] ?? spaced(code);
export const stage = code => STAGES[code] ?? spaced(code);
const PLURAL_VERBS = { has: 'have', is: 'are' };
// A step from one closing stage to another, with its cause. A step that the companion's own vote asked for needs no other cause.
export function step(to, cause, isPlural) {
  const singular = to === 'none' && cause !== 'state' ? 'is back in the conversation' : (STEPS[to] ?? spaced(to));
  const phrase = isPlural ? singular.replace(/^\S+/u, verb => PLURAL_VERBS[verb] ?? verb) : singular;
  return CAUSES[cause] ? `${phrase}: ${CAUSES[cause]}` : phrase;
}
// Small numbers as words, as people write them in a sentence.
const inWords = n => NUMBERS[n] ?? n.toLocaleString();
export const times = n => (n === 1 ? 'once' : n === 2 ? 'twice' : `${inWords(n)} times`);
// What a companion's own settings change, as one sentence; empty if nothing.
export function ownSettings({ maxTurns, mayRepeat, models }) {
  const parts = [
    maxTurns === null ? '' : `ends a conversation after ${count(maxTurns, 'answer')} of its own`,
    mayRepeat ? 'may repeat itself' : '',
    models.main === 'main' ? '' : `writes with the model “${models.main}”`,
    models.side === 'side' ? '' : `decides with the model “${models.side}”`,
  ].filter(Boolean);
  return parts.length ? `It ${parts.join(', ')}.` : '';
}

const FREQUENCIES = { very_quiet: 'rarely', quiet: 'now and then', average: 'sometimes', eager: 'often', very_eager: 'very often' };
export const interjectionLevel = code => FREQUENCIES[code] ?? FREQUENCIES.average;

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
  if (s < 2) return 'just now';
  if (s < 90) return `${Math.floor(s)} s ago`;
  if (s < 5400) return `${Math.round(s / 60)} min ago`;
  if (s < 129_600) return `${Math.round(s / 3600)} h ago`;
  return `${Math.round(s / 86_400)} days ago`;
}

export const count = (n, one, many = `${one}s`) => `${n.toLocaleString()} ${n === 1 ? one : many}`;
// Only messages by people bring back a companion that has ended the conversation.
export const byPeople = n => count(n, 'more message by a person', 'more messages by people');
// “A, B and C”, of texts or nodes.
export const listed = items => items.flatMap((item, i) => (i ? [i === items.length - 1 ? ' and ' : ', ', item] : [item]));

// What detections of repetition in a row lead to (docs/design/closing.md C-14 and C-15). The third one ends the conversation.
export const repetitionEffect = detections => (detections > 2 ? 'the companions end the conversation' : 'the companions are instructed to change the topic or end the conversation');
