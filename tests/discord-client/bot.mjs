// A bot in a server of Discord, played by discord.js. tests/it/discord/other_make.rs starts this, and there is the other end.
//
// Each line of the input is a command: {"do": …}, with the names of `commands` below. Each line of the output is what discord.js understood of an event
// or, as {"event": "done", …}, of the answer to a command. The event "error" is a failure of discord.js.

import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';

const require = createRequire(join(resolve(process.env.TERTULIA_DISCORD_MODULES), 'modules.cjs'));
const { Client, Events, GatewayIntentBits, version } = require('discord.js');

const { Guilds, GuildMessages, GuildMessageReactions, GuildMessageTyping, MessageContent } = GatewayIntentBits;
const client = new Client({
  intents: [Guilds, GuildMessages, GuildMessageReactions, GuildMessageTyping, MessageContent],
  rest: { api: process.env.TERTULIA_DISCORD_API, retries: 0 },
});

function tell(event, more) {
  process.stdout.write(`${JSON.stringify({ event, ...more })}\n`);
}

const poll = ({ question, answers, allowMultiselect, layoutType, expiresTimestamp }) => ({
  question: question.text,
  answers: answers.map(answer => [answer.id, answer.text]),
  allowMultiselect,
  layoutType,
  hours: Math.round((expiresTimestamp - Date.now()) / 3_600_000),
});

const message = told => ({
  id: told.id,
  channel: told.channel.name,
  author: told.author.displayName,
  bot: told.author.bot,
  webhook: told.webhookId,
  content: told.content,
  edited: told.editedAt !== null,
  replyTo: told.reference?.messageId ?? null,
  buttons: told.components.flatMap(row => row.components.map(button => [button.label, button.customId])),
  poll: told.poll && poll(told.poll),
  reactions: told.reactions.cache.map(reaction => [reaction.emoji.name, reaction.count, reaction.me]),
  command: told.interactionMetadata?.user.displayName ?? null,
});

// A command, or an option of one.
const command = ({ name, nameLocalizations, description, descriptionLocalizations, type, required, choices, options }) => ({
  name,
  description,
  german: [nameLocalizations?.de ?? null, descriptionLocalizations?.de ?? null],
  type,
  required: required ?? false,
  choices: choices?.map(choice => [choice.name, choice.value]) ?? [],
  options: options?.map(command) ?? [],
});

const find = ({ channel, message: id }) => client.channels.cache.get(channel).messages.fetch({ message: id, force: true });

const commands = {
  send: async ({ channel, text }) => message(await client.channels.cache.get(channel).send(text)),
  edit: async asked => message(await (await find(asked)).edit(asked.text)),
  delete: async asked => void (await (await find(asked)).delete()),
  react: async asked => void (await (await find(asked)).react(asked.emoji)),
  fetch: async asked => message(await find(asked)),
  replied: async asked => message(await (await find(asked)).fetchReference()),
  newest: async ({ channel }) => ({
    messages: (await client.channels.cache.get(channel).messages.fetch({ limit: 3 })).map(message),
  }),
  webhooks: async ({ channel }) => ({
    webhooks: (await client.channels.cache.get(channel).fetchWebhooks()).map(({ id, name, owner }) => [id, name, owner.id]),
  }),
  commands: async () => ({
    commands: (await client.application.commands.fetch({ withLocalizations: true })).map(command),
  }),
};

client.on(Events.ClientReady, () =>
  tell('ready', {
    version,
    user: client.user.id,
    guilds: client.guilds.cache.map(({ name, channels, members, memberCount }) => ({
      name,
      channels: channels.cache.map(channel => channel.name),
      permissions: members.me.permissions.has('ManageWebhooks'),
      memberCount,
    })),
  }),
);
client.on(Events.MessageCreate, created => tell('message', message(created)));
client.on(Events.MessageUpdate, (before, now) => tell('edited', { ...message(now), before: before.content }));
client.on(Events.MessageDelete, gone => tell('deleted', { id: gone.id }));
client.on(Events.MessageReactionAdd, (reaction, user) =>
  tell('reacted', { id: reaction.message.id, emoji: reaction.emoji.name, user: user.id }),
);
client.on(Events.MessageReactionRemove, (reaction, user) =>
  tell('unreacted', { id: reaction.message.id, emoji: reaction.emoji.name, user: user.id }),
);
client.on(Events.TypingStart, ({ user, channel }) => tell('typing', { user: user.id, channel: channel.name }));
client.on(Events.InteractionCreate, used =>
  tell('interaction', {
    kind: used.constructor.name,
    name: used.commandName ?? used.customId,
    subcommand: used.options?.getSubcommand(false) ?? null,
    companion: used.options?.getString('companion') ?? null,
    user: used.user.displayName,
    channel: used.channel.name,
    on: (used.targetMessage ?? used.targetUser ?? used.message)?.id ?? null,
  }),
);
client.on(Events.ShardResume, () => tell('resumed', {}));

const failed = error => tell('error', { error: error.stack ?? String(error) });
client.on(Events.Error, failed).on(Events.Warn, failed).on(Events.ShardError, failed).on(Events.Invalidated, failed);
process.on('unhandledRejection', failed).on('uncaughtException', failed);

const lines = createInterface({ input: process.stdin });
lines.on('line', async line => {
  const asked = JSON.parse(line);
  tell('done', (await commands[asked.do](asked)) ?? {});
});
lines.on('close', () => process.exit(0));

await client.login(process.env.TERTULIA_DISCORD_TOKEN);
