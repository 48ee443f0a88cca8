// What axe-core finds on a page in light and in dark, controls that cannot have the focus, and the ways in which a page is shown.

import { readFile } from 'node:fs/promises';

import { PHONE, require } from './world.mjs';

const source = await readFile(require.resolve('axe-core/axe.min.js'), 'utf8');

export async function problems(page) {
  // The policy of the page allows no scripts but its own.
  await page.evaluate(source);
  const found = [...(await violations(page)), ...(await page.evaluate(withoutFocus))];
  // A phone has the same colours, and in the dark everything but colours is the same.
  if (page.viewportSize().width <= PHONE.width) return found;
  await page.emulateMedia({ colorScheme: 'dark' });
  found.push(...(await violations(page, ['color-contrast', 'link-in-text-block'])).map(problem => `in the dark: ${problem}`));
  await page.emulateMedia({ colorScheme: 'light' });
  return found;
}

// By all rules, or by these.
async function violations(page, rules) {
  const found = await page.evaluate(runOnly => window.axe.run(document, { resultTypes: ['violations'], runOnly }), rules);
  return found.violations.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => `${id}: ${target.join(' ')}\n${failureSummary}`));
}

// Visible controls that do not take the focus. Behind a dialog nothing does.
function withoutFocus() {
  const before = document.activeElement;
  const controls = ([...document.querySelectorAll('dialog[open]')].at(-1) ?? document).querySelectorAll('button, a[href], input, select, textarea, summary, [tabindex]');
  const isUsable = node => !node.disabled && node.checkVisibility({ visibilityProperty: true }) && node.getClientRects().length + node.children.length > 0;
  const found = [...controls].filter(isUsable).filter(node => (node.focus({ preventScroll: true }), document.activeElement !== node));
  before?.focus({ preventScroll: true });
  return found.map(node => `takes no focus: ${node.outerHTML.slice(0, 120)}`);
}

export const KINDS = { wide: {}, phone: { viewport: PHONE, hasTouch: true, isMobile: true } };
