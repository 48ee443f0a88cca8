// The operator and guests of a room, each in a browser of their own.

import { world } from './world.mjs';

// What is asked of `roll` and `remind` must be confirmed, of the latter by the operator.
const RIGHTS = { TERTULIA__TOOLS__RIGHTS__ROLL__CONFIRM: 'always', TERTULIA__TOOLS__RIGHTS__REMIND__CONFIRM: 'always', TERTULIA__TOOLS__RIGHTS__REMIND__APPROVERS: '[]' };
export const it = world({ TERTULIA__SERVER__ADMIN_TOKEN: 'a-token-for-these-tests', ...RIGHTS });

export const isLive = page => page.locator('#connection[data-state=live]').waitFor();
export const dialog = page => page.locator('dialog[open]').last();

// Makes a link on the operator's page.
export async function invite(host) {
  await host.locator('#invite').click();
  await dialog(host).locator('form button').click();
  const link = await dialog(host).locator('.made input').inputValue();
  await host.keyboard.press('Escape');
  return link;
}

export async function join(t, link, name, options = {}) {
  const page = await it.open(t, null, { link, ...options });
  await page.locator('#join-name').fill(name);
  await page.keyboard.press('Enter');
  await isLive(page);
  return page;
}

// A room in a guild of its own, because a name is taken once in a guild.
export const roomOfFriends = setup => it.server.room({ guild: crypto.randomUUID(), ...setup });

// A room with the operator and one guest in it.
export async function visit(t, { guest = {}, people = ['Ana'], ...setup } = { externals: ['zed'] }) {
  const room = await roomOfFriends(setup);
  const host = await it.open(t, room, { storage: { people, decisions: undefined } });
  await isLive(host);
  const link = await invite(host);
  return { room, host, link, ben: await join(t, link, 'Ben', guest) };
}

export async function say(page, text) {
  await page.locator('#message').fill(text);
  await page.locator('#send').click();
}
export const heard = (page, text) => page.locator('.chat-message:not(.pending)', { hasText: text }).waitFor();
