// Dialogs of voice calls, loaded with the first one: consent before the first one, what this browser lacks, devices and volumes, and what is heard without speech recognition.

import { ai } from './ai.js';
import { dialog } from './dialogs.js';
import { el, name } from './dom.js';
import { loadForAll, storeForAll } from './storage.js';
import { LOCALE, listed, pieces, t } from './texts.js';
import { REHEARSAL, agreement, hostsOf, volumeOf } from './voice.js';

const LOUDEST = 1.5;

const fact = (term, ...detail) => [el('dt', null, term), el('dd', null, detail)];

// Says who hears, what leaves the machine and what is kept. `join(listening)` is called in the click that agrees. `models` are those of the readiness check.
export function askConsent({ description, companions, models, join }) {
  const { recognition, fallbacks, recognises_words: isReal, synthesis } = description;
  const hosts = hostsOf(synthesis);
  const others = hostsOf(fallbacks).filter(host => host !== recognition.host);
  const model = models?.main ?? null;
  const agree = listening => {
    storeForAll('voice-consent', agreement(description));
    box.close();
    join(listening);
  };
  const box = dialog(
    t('consent.title'),
    el('p', null, t('consent.unheard')),
    el(
      'dl',
      { class: 'consent' },
      fact(t('consent.who_title'), companions.length ? pieces(isReal ? 'consent.hears' : 'consent.notices', { who: listed(companions.map(companion => name(companion, { class: 'who' }))), count: companions.length }) : t('consent.hears_nobody'), ` ${t('consent.hears_all')}`),
      fact(
        t('consent.leaves_title'),
        el('p', null, t('consent.microphone')),
        el('p', null, !isReal ? t('consent.unrecognised') : recognition.host ? pieces('consent.recognised_at', { host: el('strong', null, recognition.host) }) : t('consent.recognised_here')),
        others.length ? el('p', null, pieces('consent.if_fails', { hosts: listed(others.map(host => el('strong', null, host))) })) : null,
        el('p', null, hosts.length ? pieces('consent.voices_at', { hosts: listed(hosts.map(host => el('strong', null, host))) }) : t('consent.voices_here')),
        el('p', null, model?.provider === REHEARSAL ? t('consent.demo') : model ? pieces('consent.model', { model: el('strong', null, model.model ?? model.provider) }) : t('consent.some_model')),
      ),
      fact(t('consent.kept_title'), t(isReal ? 'consent.kept' : 'consent.kept_typed')),
    ),
    el('p', { class: 'muted' }, t('consent.mute')),
    el('p', { class: 'actions voice-actions' }, el('button', { class: 'solid', type: 'button', onclick: () => agree(false) }, t(isReal ? 'call.talk' : 'call.join')), el('button', { class: 'outlined', type: 'button', onclick: () => agree(true) }, t('call.listen')), el('button', { class: 'outlined', type: 'button', onclick: () => box.close() }, t('base.cancel'))),
  );
}

const OBSTACLES = {
  insecure: () => [
    el('p', null, pieces('obstacles.insecure', { address: el('code', null, location.origin) })),
    el('ul', { class: 'steps' }, el('li', null, pieces('obstacles.insecure_here', { address: el('code', null, `http://localhost:${location.port || '80'}`) })), el('li', null, t('obstacles.insecure_there'))),
  ],
  codec: () => [
    el('p', null, t('obstacles.codec')),
    el('ul', { class: 'steps' }, el('li', null, t('obstacles.codec_fix'))),
  ],
};

// Why the browser cannot take part in a call, and what to do.
export function explainObstacle(obstacle) {
  dialog(t('obstacles.title'), OBSTACLES[obstacle](), el('p', { class: 'muted' }, t('obstacles.writing')));
}

// What a server without services for speech lacks, and the call as it is. `join(listening)` is called in the click that joins it.
export function explainSetUp({ recognises, join, settings }) {
  const joins = (label, listening) => el('button', { class: 'outlined', type: 'button', onclick: () => (box.close(), join(listening)) }, label);
  const box = dialog(
    t('set_up.title'),
    el('p', null, t(recognises ? 'set_up.no_voices' : 'set_up.no_words')),
    el('p', null, pieces('set_up.how', { document: el('code', null, 'docs/voice.md') })),
    el('p', { class: 'actions voice-actions' }, el('button', { class: 'solid', type: 'button', onclick: () => (box.close(), settings()) }, t('top.settings')), joins(t(recognises ? 'call.talk' : 'call.join'), false), joins(t('call.listen'), true)),
  );
}

// What a server without speech recognition hears.
export function explainRecognition() {
  dialog(t('obstacles.words_title'), el('p', null, t('obstacles.words')), el('p', null, t('obstacles.words_fix')));
}

function chooser(label, devices, chosen, choose) {
  const isThere = devices.some(({ deviceId }) => deviceId === chosen);
  const options = devices.filter(({ deviceId }) => deviceId && deviceId !== 'default');
  const select = el(
    'select',
    { onchange: () => choose(select.value || null) },
    el('option', { value: '' }, t('devices.default')),
    options.map(device => el('option', { value: device.deviceId, selected: isThere && device.deviceId === chosen }, device.label || t('devices.unnamed'))),
  );
  return el('label', { class: 'voice-field' }, el('span', null, label), select);
}

// Devices, and the volume of each companion. `companions` have `id` and `name`.
export async function chooseSound({ voice, companions, tone }) {
  const devices = await navigator.mediaDevices.enumerateDevices().catch(() => []);
  const ofKind = kind => devices.filter(device => device.kind === kind);
  const { view } = voice;
  dialog(
    t('devices.title'),
    view.listening ? null : chooser(t('devices.microphone'), ofKind('audioinput'), loadForAll('microphone'), voice.setMicrophone),
    view.canChooseLoudspeaker
      ? chooser(t('devices.loudspeaker'), ofKind('audiooutput'), loadForAll('loudspeaker'), voice.setLoudspeaker)
      : el('p', { class: 'muted' }, t('devices.loudspeaker_system')),
    companions.length ? el('h3', null, t('devices.volume')) : null,
    companions.map(companion => {
      const shown = volume => volume.toLocaleString(LOCALE, { style: 'percent' });
      const percent = el('output', null, shown(volumeOf(companion.id)));
      const range = el('input', { type: 'range', min: '0', max: String(LOUDEST), step: '0.05', value: String(volumeOf(companion.id)) });
      range.addEventListener('input', () => {
        percent.textContent = shown(Number(range.value));
        voice.setVolume(companion.id, Number(range.value));
      });
      return el('label', { class: 'voice-field', 'data-tone': tone(companion.id) }, el('span', null, name(companion.name, { class: 'who' }), ' ', ai()), range, percent);
    }),
  );
}
