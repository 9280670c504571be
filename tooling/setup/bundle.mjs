// Bundles a dependency of the package in the current folder into dist/vendor, with the licences of all that is in it:
// for libraries that start a compiler when they are installed, which their JavaScript does without, and for those with
// many files, which load several times faster from one.
//
// Arguments: the name of the dependency, or of a module in it; optionally a file that exports the parts to bundle.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { build } from 'esbuild';

const [entry, partsFile] = process.argv.slice(2);
const name = /^(?:@[^/]+\/)?[^/]+/.exec(entry)[0];
const require = createRequire(resolve('package.json'));
const outfile = resolve('dist', 'vendor', `${name}.cjs`);

const { metafile } = await build({
  entryPoints: [partsFile ?? require.resolve(entry)],
  // Resolves what the file with the parts imports.
  nodePaths: [resolve('node_modules')],
  outfile,
  bundle: true,
  platform: 'node',
  target: 'node20',
  format: 'cjs',
  // Leaves out the parts of libraries that help their users to develop.
  define: { 'process.env.NODE_ENV': '"production"' },
  // The options of the repository's TypeScript projects do not apply to libraries.
  tsconfigRaw: {},
  // Compiled parts, which the libraries try to load and do without.
  external: ['*.node', 'cpu-features'],
  metafile: true,
  logLevel: 'error',
});

/** `…/node_modules/<name>` or `…/node_modules/@<scope>/<name>` of each file of a library. */
const folders = new Set(
  Object.keys(metafile.inputs).flatMap((file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? []),
);
const licences = [...folders].sort().map((folder) => {
  const { name, version, license, licenses } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
  if (file === undefined) throw new Error(`${name} has no file with its licence`);
  return `${name} ${version} (${license ?? licenses[0].type})\n\n${readFileSync(join(folder, file), 'utf8').trim()}\n`;
});
mkdirSync(resolve('dist', 'vendor'), { recursive: true });
writeFileSync(resolve('dist', 'vendor', `${name}.notices.txt`), licences.join('\n----\n\n'));
