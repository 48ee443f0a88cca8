// Dialogs of voice calls: consent before the first one, what this browser lacks, devices and volumes, and what is heard without speech recognition.

import { dialog } from './dialogs.js';
import { el, name } from './dom.js';
import { loadForAll, storeForAll } from './storage.js';
import { volumeOf } from './voice.js';

const LOUDEST = 1.5;
const REHEARSAL = 'rehearsal';

const listed = items => items.flatMap((item, at) => [at === 0 ? null : at === items.length - 1 ? ' and ' : ', ', item]);
const hostsOf = services => [...new Set(services.map(service => service.host).filter(Boolean))].sort();

// What was agreed to. Something else asks again.
const agreement = ({ recognition, fallbacks, synthesis }) => JSON.stringify([recognition.host, hostsOf(fallbacks), hostsOf(synthesis)]);
export const hasConsent = description => loadForAll('voice-consent') === agreement(description);

const hearing = (isReal, many) => (isReal ? (many ? ' hear what you say, and' : ' hears what you say, and') : many ? ' notice that you talk, read what you type to be said aloud, and' : ' notices that you talk, reads what you type to be said aloud, and');

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
    'Before you talk',
    el(
      'dl',
      { class: 'consent' },
      fact('Who hears you', companions.length ? [listed(companions.map(companion => name(companion, { class: 'who' }))), hearing(isReal, companions.length > 1), ' may answer aloud.'] : 'There is no companion in this room now.', ' Everybody who can open this room reads your words, but does not hear your voice.'),
      fact(
        'What leaves this computer',
        el('p', null, 'Your microphone’s sound goes to the server of this page while you are in the call and not muted.'),
        el('p', null, !isReal ? 'The server detects when you talk. It does not recognise words, and sends your voice nowhere.' : recognition.host ? ['The server sends your voice to ', el('strong', null, recognition.host), ', which turns it into words.'] : 'The server turns it into words by itself, and sends your voice nowhere.'),
        others.length ? el('p', null, 'If that fails, it sends your voice to ', listed(others.map(host => el('strong', null, host))), '.') : null,
        el('p', null, hosts.length ? ['The words of the companions go to ', el('strong', null, hosts.join(', ')), ', which makes their voices.'] : 'The voices of the companions are made on the server.'),
        model && model.provider !== REHEARSAL ? el('p', null, 'As with typed messages, your words go to the model ', el('strong', null, model.model ?? model.provider), '.') : null,
      ),
      fact('What is kept', 'Your words, as messages of this room. Your voice is never stored. Captions that change while you talk are not stored either.'),
    ),
    el('p', { class: 'muted' }, 'Mute or leave at any time. Two people at one microphone count as one person.'),
    el('p', { class: 'actions voice-actions' }, el('button', { class: 'solid', type: 'button', autofocus: true, onclick: () => agree(false) }, 'Talk'), el('button', { class: 'outlined', type: 'button', onclick: () => agree(true) }, 'Only listen'), el('button', { class: 'outlined', type: 'button', onclick: () => box.close() }, 'Cancel')),
  );
}

const OBSTACLES = {
  insecure: () => [
    el('p', null, 'Browsers give a microphone only to pages that are served over https, or by this computer itself. This page is at ', el('code', null, location.origin), '.'),
    el('ul', { class: 'steps' }, el('li', null, 'On the computer that runs the server, open ', el('code', null, `http://localhost:${location.port || '80'}`), '.'), el('li', null, 'Elsewhere, put a proxy with https before the server, and set ', el('code', null, 'server.public_url'), '.')),
  ],
  codec: () => [
    el('p', null, 'This browser cannot encode or decode Opus by itself (WebCodecs for audio).'),
    el('ul', { class: 'steps' }, el('li', null, 'Use a current Chromium, Firefox or Safari.')),
  ],
};

// Why the browser cannot take part in a call, and what to do.
export function explainObstacle(obstacle) {
  dialog('You cannot talk here yet', OBSTACLES[obstacle](), el('p', { class: 'muted' }, 'Writing works as always.'));
}

// What a server without speech recognition hears.
export function explainRecognition() {
  dialog(
    'Your voice is not turned into words',
    el('p', null, 'This server has no speech recognition. It notices when you talk and for how long, but knows no words: the companions read “(speech, 2.3 s)”. Its operator can connect a service or a local server (', el('code', null, 'speech.recognition'), ').'),
    el('p', null, 'Typed words are understood. Type them below, sent as voice: they arrive as if you had spoken them, with the timing of speech, and companions answer aloud.'),
  );
}

function chooser(label, devices, chosen, choose) {
  const isThere = devices.some(({ deviceId }) => deviceId === chosen);
  const options = devices.filter(({ deviceId }) => deviceId && deviceId !== 'default');
  const select = el(
    'select',
    { onchange: () => choose(select.value || null) },
    el('option', { value: '' }, 'Default'),
    options.map(device => el('option', { value: device.deviceId, selected: isThere && device.deviceId === chosen }, device.label || 'Unnamed device')),
  );
  return el('label', { class: 'voice-field' }, el('span', null, label), select);
}

// Devices, and the volume of each companion. `companions` have `id` and `name`.
export async function chooseSound({ voice, companions, tone }) {
  const devices = await navigator.mediaDevices.enumerateDevices().catch(() => []);
  const ofKind = kind => devices.filter(device => device.kind === kind);
  const { view } = voice;
  dialog(
    'Devices and volume',
    view.listening ? null : chooser('Microphone', ofKind('audioinput'), loadForAll('microphone'), voice.setMicrophone),
    view.canChooseLoudspeaker
      ? chooser('Loudspeaker', ofKind('audiooutput'), loadForAll('loudspeaker'), voice.setLoudspeaker)
      : el('p', { class: 'muted' }, 'This browser lets only the system choose the loudspeaker.'),
    companions.length ? el('h3', null, 'Volume') : null,
    companions.map(companion => {
      const percent = el('output', null, `${Math.round(volumeOf(companion.id) * 100)} %`);
      const range = el('input', { type: 'range', min: '0', max: String(LOUDEST), step: '0.05', value: String(volumeOf(companion.id)) });
      range.addEventListener('input', () => {
        percent.textContent = `${Math.round(range.value * 100)} %`;
        voice.setVolume(companion.id, Number(range.value));
      });
      return el('label', { class: 'voice-field', 'data-tone': tone(companion.id) }, name(companion.name, { class: 'who' }), range, percent);
    }),
  );
}
