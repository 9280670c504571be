// Bundles a dependency of the package in the current folder into dist/vendor, with the licences of all that is in it:
// for libraries that start a compiler when they are installed, which their JavaScript does without, and for those with
// many files, which load several times faster from one.
//
// Arguments: the name of the dependency, or of a module in it; optionally a file that exports the parts to bundle.
// --without=a,b leaves out modules that the library loads and that nothing uses: any use of them throws an error.

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { build } from 'esbuild';

const {
  positionals: [entry, partsFile],
  values: { without },
} = parseArgs({ allowPositionals: true, options: { without: { type: 'string', default: '' } } });
const name = /^(?:@[^/]+\/)?[^/]+/.exec(entry)[0];
const require = createRequire(resolve('package.json'));
const outfile = resolve('dist', 'vendor', `${name}.cjs`);

/** A function with properties, so that libraries can load it; calling it and reading a property throw an error. */
const leftOut = (module) => `
  const fail = () => { throw new Error('${module} is not part of the bundle of ${name}'); };
  module.exports = new Proxy(fail, { get: fail });`;
const leaveOut = {
  name: 'leave-out',
  setup({ onResolve, onLoad }) {
    const modules = new Set(without.split(','));
    onResolve({ filter: /./ }, ({ path }) => (modules.has(path) ? { path, namespace: 'left-out' } : undefined));
    onLoad({ filter: /./, namespace: 'left-out' }, ({ path }) => ({ contents: leftOut(path) }));
  },
};

const { metafile } = await build({
  entryPoints: [partsFile ?? require.resolve(entry)],
  // Resolves what the file with the parts imports.
  nodePaths: [resolve('node_modules')],
  outfile,
  bundle: true,
  platform: 'node',
  target: 'node22',
  format: 'cjs',
  // Leaves out the parts of libraries that help their users to develop.
  define: { 'process.env.NODE_ENV': '"production"' },
  // The options of the repository's TypeScript projects do not apply to libraries.
  tsconfigRaw: {},
  // Compiled parts, which the libraries try to load and do without.
  external: ['*.node', 'cpu-features'],
  plugins: [leaveOut],
  metafile: true,
  logLevel: 'error',
});

/** `…/node_modules/<name>` or `…/node_modules/@<scope>/<name>` of each file of a library. */
const folders = new Set(
  Object.keys(metafile.inputs).flatMap((file) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0] ?? []),
);
/** Returns the text of a library's licence: its file, or else the section of its readme. */
function licenceIn(folder) {
  const read = (name) => {
    const file = readdirSync(folder).find((each) => name.test(each));
    return file === undefined ? '' : readFileSync(join(folder, file), 'utf8');
  };
  return read(/^licen[cs]e/i) || /^#+ licen[cs]e[^]*/im.exec(read(/^readme/i))?.[0];
}

const licences = [...folders].sort().map((folder) => {
  const { name, version, license, licenses, author } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const text = licenceIn(folder);
  if (text === undefined) throw new Error(`${name} has no text of its licence`);
  const by = typeof author === 'string' ? author : (author?.name ?? '');
  return `${name} ${version} (${license ?? licenses[0].type}) ${by}`.trim() + `\n\n${text.trim()}\n`;
});
mkdirSync(resolve('dist', 'vendor'), { recursive: true });
writeFileSync(resolve('dist', 'vendor', `${name}.notices.txt`), licences.join('\n----\n\n'));
