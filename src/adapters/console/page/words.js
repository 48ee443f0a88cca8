// Chooses the texts for codes of the server, numbers and times.

import { LOCALE, has, t } from './texts.js';

// With these reasons no model was asked. The last six settle messages whatever the trigger.
const UNASKED = ['event', 'other_addressed', 'no_initiative', 'irrelevant', 'budget', 'unpostable', 'loop_guard', 'closed', 'paused', 'cancelled', 'backchannel', 'overflow', 'stale'];
const WITHOUT_TRIGGER = ['closed', 'paused', 'cancelled', 'backchannel', 'overflow', 'stale'];

// How often a companion speaks unasked. The first one is a setting of its own.
export const INTERJECTION_LEVELS = ['spoken_to', 'very_quiet', 'quiet', 'average', 'eager', 'very_eager'];
export const levelOf = (interjection, quietHours) => (quietHours === 'always' ? 'spoken_to' : interjection);

// Whether no computer has the name in the address of a model.
export const isUnknownHost = detail => detail.includes('failed to lookup address information');
// What the server says about a model names the setting; on the page it is a field.
export const ofModel = detail => (isUnknownHost(detail) ? t('fixes.unknown_host') : detail.replaceAll('base_url', 'the address'));

export const upper = text => text.charAt(0).toUpperCase() + text.slice(1);
export const sentence = text => `${upper(text)}${/[.!?…]$/u.test(text) ? '' : '.'}`;

// The text of a message, or what it is without words.
export const beginning = ({ text, files, voiceNote }) => text || (voiceNote ? t('messages.voice_note', voiceNote) : files[0]?.kind === 'image' ? t('messages.quote_pictures', { count: files.filter(({ kind }) => kind === 'image').length }) : (files[0]?.name ?? ''));

// A code in words, where nothing better is known.
export const spaced = code => String(code ?? '').replaceAll('_', ' ');
export const coded = (section, code, values) => (has(section + code) ? t(section + code, values) : spaced(code));

export const verdict = code => (has(`verdicts.${code}`) ? `verdicts.${code}` : 'verdicts.unknown');
export const missing = code => coded('missing.', code);
export const trigger = code => coded('triggers.', code);
// Of models, the page shows no names that only the settings know.
export const model = code => ({ rehearsal: t('facts.demo'), side: t('facts.side'), main: t('facts.main') })[code] ?? code;
// The model with which a companion writes.
export const modelThatWrites = code => (code === 'side' ? t('facts.side_writes') : model(code));
export const reason = code => coded('reasons.', code);
// A part of a prompt, or of the server.
export const part = code => coded('parts.', code);
export const selection = code => coded('selections.', code);
export const doing = code => coded('doings.', code);
export const stage = code => (code === 'none' ? '' : coded('stages.', code));
export const interjectionLevel = code => t(`frequencies.${INTERJECTION_LEVELS.includes(code) ? code : 'average'}`);
export const error = code => coded('errors.', code || 'none');
// A reply that failed after its first words stopped midway.
export const failure = (code, begun) => (begun && code === 'unreachable' ? t('errors.midway') : error(code));
export const wasAsked = decision => !UNASKED.includes(decision.reason);
// The trigger of a decision, unless the decision would have been the same with any trigger.
export const occasion = decision => (WITHOUT_TRIGGER.includes(decision.reason) ? '' : trigger(decision.trigger));
// A step from one closing stage to another, as the key of a text.
export const step = (to, cause) => `steps.${to === 'none' && cause !== 'state' ? 'back' : to}`;
// A step that the companion's own vote asked for needs no other cause.
export const cause = code => (has(`causes.${code}`) ? `: ${t(`causes.${code}`)}` : '');
// What detections of repetition in a row lead to (docs/design/closing.md C-14 and C-15). The third one ends the conversation.
export const repetitionEffect = detections => t(detections > 2 ? 'meters.repetition_end' : 'meters.repetition_change');
// When a companion that has ended the conversation comes back.
export const rejoins = count => (count ? t('cards.rejoins_after', { count }) : t('cards.rejoins'));
// Whether there are hours in which a companion speaks only when spoken to.
export const hasHours = quietHours => /\d/u.test(quietHours ?? '');
// What a companion's own settings change; empty if nothing.
export const ownSettings = ({ maxTurns, mayRepeat, models, quietHours }) =>
  [
    hasHours(quietHours) ? t('cards.quiet_hours', { hours: quietHours }) : '',
    maxTurns === null ? '' : t('cards.max_turns', { count: maxTurns }),
    mayRepeat ? t('cards.may_repeat') : '',
    models.main === 'main' ? '' : t('cards.writes_with', { model: modelThatWrites(models.main) }),
    models.side === 'side' ? '' : t('cards.decides_with', { model: model(models.side) }),
  ]
    .filter(Boolean)
    .join(' ');

export const number = (value, digits = 0) => value.toLocaleString(LOCALE, { maximumFractionDigits: digits, minimumFractionDigits: Number.isInteger(value) ? 0 : digits });
// How much a companion wants to speak, 0 to 10.
export const importance = value => number(value, 1);

const clock = new Intl.DateTimeFormat(LOCALE, { hour: '2-digit', minute: '2-digit' });
const toTheSecond = new Intl.DateTimeFormat(LOCALE, { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const exact = new Intl.DateTimeFormat(LOCALE, { dateStyle: 'medium', timeStyle: 'medium' });
const toTheMinute = new Intl.DateTimeFormat(LOCALE, { dateStyle: 'medium', timeStyle: 'short' });
const dayName = new Intl.DateTimeFormat(LOCALE, { weekday: 'long', day: 'numeric', month: 'long', year: 'numeric' });
const dayCode = new Intl.DateTimeFormat('en-CA', { year: 'numeric', month: '2-digit', day: '2-digit' });
const relative = new Intl.RelativeTimeFormat(LOCALE, { style: 'short' });
const nearDay = new Intl.RelativeTimeFormat(LOCALE, { numeric: 'auto' });

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
export const minute = at => format(toTheMinute, at);
export const dayOf = at => format(dayCode, at);

export function day(at, now) {
  const code = dayOf(at);
  const before = [0, 1].find(days => code === dayOf(now - days * 86_400_000));
  return before === undefined ? format(dayName, at) : nearDay.format(-before, 'day');
}

export function seconds(ms) {
  const s = Math.max(0, ms) / 1000;
  if (s < 10) return `${s.toLocaleString(LOCALE, { maximumFractionDigits: 1 })} s`;
  if (s < 100) return `${Math.round(s)} s`;
  return `${Math.round(s / 60)} min`;
}

// Of what goes on: it changes once a second.
export const running = ms => seconds(Math.ceil(ms / 1000) * 1000);

// A span of time before or after now, in the unit that suits it.
function span(s) {
  const size = Math.abs(s);
  const [length, unit] = size < 60 ? [1, 'second'] : size < 5400 ? [60, 'minute'] : size < 129_600 ? [3600, 'hour'] : size < 60 * 86_400 ? [86_400, 'day'] : size < 730 * 86_400 ? [30.44 * 86_400, 'month'] : [365.25 * 86_400, 'year'];
  return relative.format(Math.round(s / length), unit);
}

export function until(at, now) {
  const ms = new Date(at).getTime() - now;
  return Number.isFinite(ms) && ms > 0 ? span(ms / 1000) : t('base.any_moment');
}

export function ago(at, now) {
  const parsed = date(at);
  if (!parsed) return '';
  const s = Math.max(0, (now - parsed.getTime()) / 1000);
  return s < 2 ? t('base.just_now') : span(-s);
}
