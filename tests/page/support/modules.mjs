// Loads modules of the page.

import { readFile } from 'node:fs/promises';

// The page's files are modules by how they are loaded, so they are loaded as modules here, too, each after those that it imports.
const urls = new Map();

export async function load(name) {
  const written = await readFile(new URL(`../../../src/adapters/console/page/${name}`, import.meta.url), 'utf8');
  const source = written.replace(/(?<=^import .* from ')\.\/(.*)(?=';$)/gmu, (_, imported) => urls.get(imported));
  return stub(name, source);
}

// Another text in the place of a module.
export function stub(name, source) {
  urls.set(name, `data:text/javascript,${encodeURIComponent(source).replaceAll("'", '%27')}`);
  return import(urls.get(name));
}
