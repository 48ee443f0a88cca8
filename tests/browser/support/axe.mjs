// What axe-core finds on a page, and the ways in which it is shown.

import { readFile } from 'node:fs/promises';

import { PHONE, require } from './world.mjs';

const source = await readFile(require.resolve('axe-core/axe.min.js'), 'utf8');

export async function problems(page) {
  // The policy of the page allows no scripts but its own.
  await page.evaluate(source);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  return violations.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => `${id}: ${target.join(' ')}\n${failureSummary}`));
}

export const KINDS = { light: {}, dark: { colorScheme: 'dark' }, phone: { viewport: PHONE, hasTouch: true, isMobile: true } };
