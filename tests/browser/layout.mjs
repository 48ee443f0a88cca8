// The layout with longer texts, and written from right to left: nothing is scrolled sideways, and nothing lies over something else.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { PHONE, withTexts, world } from './support/world.mjs';

const it = world();
const WIDE = { width: 1280, height: 800 };

const each = (section, change) => Object.fromEntries(Object.entries(section).map(([key, value]) => [key, typeof value === 'string' ? change(value) : each(value, change)]));
const isName = piece => piece.startsWith('{');
const inWords = change => text => text.split(/(\{\w+\})/u).map(piece => (isName(piece) ? piece : change(piece))).join('');

// Hebrew letters in the place of Latin ones.
const HEBREW = 'אבגדהוזחטיכלמנסעפצקרשת';
const hebrew = texts => each(texts, inWords(piece => piece.replace(/\p{L}/gu, letter => HEBREW[letter.toLowerCase().codePointAt(0) % HEBREW.length])));

// Each text with its own words again, until it is 40 % longer.
function longer(texts) {
  return each(texts, text => {
    const words = text.replace(/\{\w+\}/gu, '').split(/\s+/u).filter(word => /\p{L}/u.test(word));
    const wanted = Math.ceil(text.length * 1.4);
    let long = text;
    for (let i = 0; words.length && long.length < wanted; i += 1) long += ` ${words[i % words.length]}`;
    return long;
  });
}

// What is wider than its place, what reaches beyond the screen, and what lies over something else that can be pressed. Of a page with an open dialog, in that.
const misplaced = page =>
  page.evaluate(() => {
    const root = [...document.querySelectorAll('dialog[open]')].at(-1) ?? document.body;
    const label = node => `${node.tagName.toLowerCase()}${node.id ? `#${node.id}` : node.className && `.${node.className}`} “${node.textContent.trim().slice(0, 24)}”`;
    const isShown = node => node.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && !node.closest('.skip, .visually-hidden');
    const all = [...root.querySelectorAll('*')].filter(isShown);
    const found = [];
    if (document.documentElement.scrollWidth > innerWidth) found.push(`the page is ${document.documentElement.scrollWidth - innerWidth} px too wide`);
    for (const node of [root, ...all]) {
      const { overflowX } = getComputedStyle(node);
      if (['auto', 'scroll'].includes(overflowX) && node.scrollWidth > node.clientWidth + 1 && !node.matches('pre, input, textarea')) found.push(`${label(node)} scrolls sideways by ${node.scrollWidth - node.clientWidth} px`);
    }
    const pressed = all.filter(node => node.matches('button, a[href], input:not([type=file]), select, textarea, summary'));
    const boxes = pressed.map(node => [node, node.getBoundingClientRect()]).filter(([, { width, height }]) => width && height);
    // What is scrolled away is not seen.
    function seen(node, { left, right, top, bottom }) {
      if (top < 0 || bottom > innerHeight || right <= 0 || left >= innerWidth) return false;
      for (let around = node.parentElement; around; around = around.parentElement) {
        const frame = around.getBoundingClientRect();
        if (getComputedStyle(around).overflowY !== 'visible' && (top < frame.top - 1 || bottom > frame.bottom + 1)) return false;
      }
      return true;
    }
    for (const [node, box] of boxes) if (seen(node, box) && (box.left < -1 || box.right > innerWidth + 1)) found.push(`${label(node)} reaches from ${Math.round(box.left)} to ${Math.round(box.right)}`);
    const above = (x, y) => document.elementsFromPoint(x / 2, y / 2).find(isShown);
    // Under a bar that stays at the end, there is what can be scrolled out.
    const stays = node => Boolean(node?.closest('.actions.last'));
    const isTop = (node, { left, right, top, bottom }) => {
      const there = above(left + right, top + bottom);
      return !there || stays(there) || node.contains(there) || there.contains(node) || there.closest('label')?.control === node;
    };
    for (const [node, box] of boxes) if (seen(node, box) && !isTop(node, box)) found.push(`${label(node)} lies under ${label(above(box.left + box.right, box.top + box.bottom))}`);
    // What floats may lie over the rest.
    const floats = node => node !== root && (['absolute', 'fixed', 'sticky'].includes(getComputedStyle(node).position) || (node.parentElement && floats(node.parentElement)));
    const flat = boxes.filter(([node, box]) => seen(node, box) && !floats(node));
    const cross = (one, other) => Math.min(one.right, other.right) - Math.max(one.left, other.left) > 2 && Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top) > 2;
    flat.forEach(([node, box], i) => {
      for (const [other, there] of flat.slice(i + 1)) if (!node.contains(other) && cross(box, there)) found.push(`${label(node)} crosses ${label(other)}`);
    });
    return found;
  });

for (const [name, change, dir] of [['from right to left', hebrew, 'rtl'], ['40 % longer', longer, 'ltr']]) {
  for (const [size, viewport] of [['on a desk', WIDE], ['on a phone', PHONE]]) {
    test(`texts ${name} fit ${size}`, async t => {
      const room = await it.server.room({ companions: ['aria', 'bruno', 'cleo'] });
      await it.server.say(room, 'Aria, are you there?', 'Ana');
      const isPhone = viewport === PHONE;
      const page = await it.open(t, room, { viewport, hasTouch: isPhone, isMobile: isPhone, prepare: opened => withTexts(opened, change, dir) });
      await page.locator('.chat-message.companion:not(.draft)').first().waitFor();
      assert.equal(await page.evaluate(() => getComputedStyle(document.body).direction), dir);
      const fits = async what => assert.deepEqual(await misplaced(page), [], what);
      await fits('the talk');
      await page.locator('.chat-message.user [data-focus=outcomes]').press('Enter');
      await page.locator('.outcomes').waitFor();
      await page.locator('.card-head').first().press('Enter');
      await page.locator('.card[data-open] .controls').waitFor();
      await fits('details');

      // A message has its own direction.
      const mine = page.locator('.chat-message.user .words').first();
      assert.equal(await mine.evaluate(node => getComputedStyle(node).direction), 'ltr');

      await page.locator('.chat-message.companion [data-focus=profile]').first().press('Enter');
      await page.locator('dialog[open]').waitFor();
      await fits('a profile');
      await page.locator('dialog[open] .actions button').first().click();
      await page.locator('dialog[open] #companion-name').waitFor();
      await page.locator('details.more summary').click();
      await fits('the editor');
      await page.keyboard.press('Escape');
      await page.locator('dialog').waitFor({ state: 'detached' });
      if (isPhone) await page.locator('#more').click();
      await page.locator('#invite').click();
      await page.locator('dialog[open] form').waitFor();
      await fits('an invitation');
    });
  }
}
