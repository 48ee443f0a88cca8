// People in calls of Discord, played by @discordjs/voice. tests/it/discord/real_time/other_make.rs starts this, and there is the other end.
//
// Each line of the input is a command: {"do": "join" | "admit" | "say" | "leave", "user", …}. Each line of the output is an event about one person:
//
//   asks      wants to be let in: the test answers with "admit"
//   status    of the connection, such as "ready"
//   grouped   a transition of the end-to-end encryption is done
//   heard     one packet of somebody
//   said      everything is said

import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';

const require = createRequire(join(resolve(process.env.TERTULIA_VOICE_MODULES), 'modules.cjs'));

// The client always uses TLS, the servers of the tests never do.
const WebSocket = require('ws');
require.cache[require.resolve('ws')].exports = class extends WebSocket {
  constructor(address, ...rest) {
    super(String(address).replace('wss://', 'ws://'), ...rest);
  }
};

const voice = require('@discordjs/voice');

const people = new Map();

function tell(user, event, more = {}) {
  process.stdout.write(`${JSON.stringify({ user, event, ...more })}\n`);
}

// Hears everything that somebody says, from the first packet on.
function listen(user, connection, from) {
  if (connection.receiver.subscriptions.has(from)) return;
  connection.receiver.subscribe(from).on('data', packet => tell(user, 'heard', { from, packet: packet.toString('base64') }));
}

const commands = {
  join({ user, guild, channel }) {
    const person = { guild, channel };
    people.set(user, person);
    person.connection = voice.joinVoiceChannel({
      guildId: guild,
      channelId: channel,
      group: user,
      selfDeaf: false,
      selfMute: false,
      adapterCreator: methods => {
        person.methods = methods;
        return { sendPayload: payload => (payload.d.channel_id && tell(user, 'asks'), true), destroy() {} };
      },
    });
    person.connection.on('stateChange', (before, now) => before.status === now.status || tell(user, 'status', { status: now.status }));
    person.connection.on('transitioned', () => tell(user, 'grouped'));
    person.connection.on('error', error => tell(user, 'error', { error: error.message }));
    person.connection.receiver.speaking.on('start', from => listen(user, person.connection, from));
    person.player = voice.createAudioPlayer();
    person.player.on('error', error => tell(user, 'error', { error: error.message }));
    person.player.on('idle', () => tell(user, 'said'));
    person.connection.subscribe(person.player);
  },

  admit({ user, session, token, endpoint }) {
    const { methods, guild, channel } = people.get(user);
    const state = { guild_id: guild, channel_id: channel, user_id: user, session_id: session };
    methods.onVoiceStateUpdate({ ...state, self_deaf: false, self_mute: false, deaf: false, mute: false });
    methods.onVoiceServerUpdate({ guild_id: guild, token, endpoint });
  },

  say({ user, packets }) {
    const opus = Readable.from(packets.map(packet => Buffer.from(packet, 'base64')), { objectMode: true });
    people.get(user).player.play(voice.createAudioResource(opus, { inputType: voice.StreamType.Opus }));
  },

  leave({ user }) {
    people.get(user).connection.destroy();
    people.delete(user);
  },
};

const lines = createInterface({ input: process.stdin });
lines.on('line', line => {
  const command = JSON.parse(line);
  commands[command.do](command);
});
lines.on('close', () => process.exit(0));
