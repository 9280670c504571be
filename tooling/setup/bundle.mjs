// Bundles a library whose installation would start a compiler, which its JavaScript does without, into dist/vendor of the
// package in the current folder, with the licences of all that is in it and a list of its parts (CycloneDX).
//
// Argument: the name of the library.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { build } from 'esbuild';

const [library] = process.argv.slice(2);
const vendor = resolve('dist', 'vendor');

const { metafile } = await build({
  entryPoints: [createRequire(resolve('package.json')).resolve(library)],
  outfile: join(vendor, `${library}.cjs`),
  bundle: true,
  platform: 'node',
  target: 'node22',
  format: 'cjs',
  // The options of the repository's TypeScript projects do not apply to libraries.
  tsconfigRaw: {},
  // Compiled parts, which the library tries to load and does without.
  external: ['*.node', 'cpu-features'],
  metafile: true,
  logLevel: 'error',
});

/** Returns the text of a library's licence: its file, or else the section of its readme. */
function licenceIn(folder) {
  const read = (name) => {
    const file = readdirSync(folder).find((each) => name.test(each));
    return file === undefined ? '' : readFileSync(join(folder, file), 'utf8');
  };
  return read(/^licen[cs]e/i) || /^#+ licen[cs]e[^]*/im.exec(read(/^readme/i))?.[0];
}

/** `…/node_modules/<name>` or `…/node_modules/@<scope>/<name>` of each file of the bundle. */
const folders = new Set(
  Object.keys(metafile.inputs).flatMap((file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? []),
);
const parts = [...folders].sort().map((folder) => {
  const { name, version, license, licenses, author } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const text = licenceIn(folder);
  if (text === undefined) throw new Error(`${name} has no text of its licence`);
  const by = typeof author === 'string' ? author : (author?.name ?? '');
  return { name, version, licence: license ?? licenses[0].type, by, text: text.trim() };
});

mkdirSync(vendor, { recursive: true });
const notices = parts.map(({ name, version, licence, by, text }) =>
  `${name} ${version} (${licence}) ${by}`.trim().concat(`\n\n${text}\n`),
);
writeFileSync(join(vendor, `${library}.notices.txt`), notices.join('\n----\n\n'));
const components = parts.map(({ name, version, licence }) => {
  const purl = `pkg:npm/${name.replace('@', '%40')}@${version}`;
  return { type: 'library', 'bom-ref': purl, name, version, licenses: [{ license: { id: licence } }], purl };
});
const bom = { bomFormat: 'CycloneDX', specVersion: '1.5', version: 1, components };
writeFileSync(join(vendor, `${library}.cdx.json`), `${JSON.stringify(bom, undefined, 2)}\n`);
