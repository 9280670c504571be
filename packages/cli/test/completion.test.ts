/** The completion scripts; bash itself runs its own. */

import { execFile } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { run } from '../src/index.js';
import { CapturedOutput } from './console.js';

const execute = promisify(execFile);

async function scriptFor(shell: string): Promise<string> {
  const out = new CapturedOutput();
  const code = await run(['completion', shell], { out, env: {}, interrupted: new AbortController().signal });
  expect([code, out.noted]).toEqual([0, '']);
  return out.printed;
}

describe('completion in bash', () => {
  let folder: string;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'nodepool-completion-'));
    writeFileSync(join(folder, 'script'), await scriptFor('bash'));
    // Stands in for the program: notes its arguments and prints the names of nodes, labels or providers.
    const program = `#!/bin/sh
echo "$*" >> '${folder}/calls'
case "$*" in
  *request-list*) echo 200-0000000001 ;;
  *label-list*) printf '%s\n' debian-12 'debian$(touch ${folder}/executed)' fedora ;;
  *provider-names*) echo cloud-east ;;
  *) printf '%s\n' 0000000041 0000000042 ;;
esac
`;
    writeFileSync(join(folder, 'nodepool'), program);
    chmodSync(join(folder, 'nodepool'), 0o755);
  });

  afterAll(() => rmSync(folder, { recursive: true }));

  /** Returns the candidates for the last of the words, as bash gets them from the completion of `nodepool`. */
  async function completed(...words: string[]): Promise<string[]> {
    const line = words.map((word) => `'${word}'`).join(' ');
    const commands = [
      `. '${folder}/script'`,
      'complete -p nodepool > /dev/null || exit 9',
      `COMP_WORDS=(nodepool ${line}) COMP_CWORD=${words.length}`,
      "function=$(complete -p nodepool | sed 's/.*-F \\([^ ]*\\) .*/\\1/')",
      '$function nodepool',
      'printf "%s\\n" "${COMPREPLY[@]}"',
    ];
    const env = { ...process.env, PATH: `${folder}:${process.env['PATH'] ?? ''}` };
    const { stdout, stderr } = await execute('bash', ['--norc', '-c', commands.join('\n')], { env, cwd: folder });
    expect(stderr).toBe('');
    return stdout.split('\n').filter((name) => name !== '');
  }

  it.each<readonly [string[], string[]]>([
    [['des'], ['describe']],
    [['-c', 'nodepool.yaml', 'image-p'], ['image-pause']],
    [['--color=never', 'dib-image-d'], ['dib-image-delete']],
    [['list', '--fo'], ['--format']],
    [['list', '-o', 'y'], ['yaml']],
    [['list', '--format', '=', 'wi'], ['wide']],
    [
      ['list', '--state', 'in'],
      ['init', 'in-use'],
    ],
    [['request-list', '--sort', 'ten'], ['tenant_name']],
    [
      ['--color', ''],
      ['auto', 'always', 'never'],
    ],
    [['explain', 'no'], ['node']],
    [
      ['delete', '00000000'],
      ['0000000041', '0000000042'],
    ],
    [['describe', 'request', '2'], ['200-0000000001']],
    [
      ['describe', '-o', 'json', 'node', ''],
      ['0000000041', '0000000042'],
    ],
    [['request', 'fedora', 'fed'], ['fedora']],
    [['erase', ''], ['cloud-east']],
    [['hold', '0000000041', '0'], []],
    [['-c', 'scr'], ['script']],
    [['import-image-data', 'scr'], ['script']],
    [
      ['completion', ''],
      ['bash', 'zsh', 'fish'],
    ],
    [['provider-n'], []],
  ])('completes %j', async (words, expected) => {
    expect(await completed(...words)).toEqual(expected);
  });

  it('uses the given configuration file', async () => {
    await completed('-c', 'site.yaml', '--secure', '=', 'secret.yaml', 'delete', '');
    expect(readFileSync(join(folder, 'calls'), 'utf8')).toContain('-c site.yaml --secure secret.yaml list -o name\n');
  });

  it('never executes names as commands', async () => {
    expect(await completed('request', 'debian')).toEqual(['debian-12', expect.stringContaining('\\$\\(touch\\ ')]);
    expect(existsSync(join(folder, 'executed'))).toBe(false);
  });
});

describe.each(['bash', 'zsh', 'fish'])('the completion script for %s', (shell) => {
  it('contains every command with its options', async () => {
    const script = await scriptFor(shell);
    const page = readFileSync(join(__dirname, '..', '..', '..', 'docs', 'reference', 'programs.md'), 'utf8');
    const commands = [...page.matchAll(/^### `nodepool ([a-z-]+)`/gm)].map(([, name = '']) => name);
    expect(commands.length).toBeGreaterThan(25);
    expect(commands.filter((name) => !script.includes(name))).toEqual([]);
    const options = [
      ...page
        .split('## `nodepool`')[1]!
        .split('\n## ')[0]!
        .matchAll(/^ +(?:-\w, )?--([a-z-]+)/gm),
    ];
    const names = new Set(options.map(([, name = '']) => name).filter((name) => !['help', 'version'].includes(name)));
    expect([...names].filter((name) => !script.includes(shell === 'fish' ? `-l ${name} ` : `--${name}`))).toEqual([]);
  });
});
