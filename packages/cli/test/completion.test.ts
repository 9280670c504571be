/** The completion scripts, each run by its own shell. */

import { execFile } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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

let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'nodepool-completion-'));
  // Stands in for the program: notes its arguments and prints the names of nodes, labels or providers.
  const program = `#!/bin/sh
echo "$*" >> '${folder}/calls'
case "$*" in
  *request-list*) echo 200-0000000001 ;;
  *label-list*) printf '%s\n' debian-12 'debian$(touch ${folder}/executed)' fedora 'my label' "it's" ns:small 'ns:tiny one' ;;
  *provider-names*) printf '%s\n' cloud-east 'region two' ;;
  *) printf '%s\n' 0000000041 0000000042 ;;
esac
`;
  writeFileSync(join(folder, 'nodepool'), program);
  chmodSync(join(folder, 'nodepool'), 0o755);
  for (const shell of ['bash', 'fish']) writeFileSync(join(folder, `script.${shell}`), await scriptFor(shell));
  mkdirSync(join(folder, 'functions'));
  writeFileSync(join(folder, 'functions', '_nodepool'), await scriptFor('zsh'));
});

afterAll(() => rmSync(folder, { recursive: true }));

/** Runs a shell in the folder, with the program in its path. */
async function inShell(shell: string, ...args: string[]): Promise<string> {
  const env = { ...process.env, PATH: `${folder}:${process.env['PATH'] ?? ''}`, HOME: folder, TERM: 'dumb' };
  const { stdout, stderr } = await execute(shell, args, { env, cwd: folder });
  expect(stderr).toBe('');
  return stdout;
}

describe('the completion in bash', () => {
  /** Returns the candidates for the last of the words, as bash gets them from the completion of `nodepool`. */
  async function completed(...words: string[]): Promise<string[]> {
    const line = words.map((word) => `'${word.replaceAll("'", String.raw`'\''`)}'`).join(' ');
    const commands = [
      `. '${folder}/script.bash'`,
      'complete -p nodepool > /dev/null || exit 9',
      `COMP_WORDS=(nodepool ${line}) COMP_CWORD=${words.length}`,
      "function=$(complete -p nodepool | sed 's/.*-F \\([^ ]*\\) .*/\\1/')",
      '$function nodepool',
      'printf "%s\\n" "${COMPREPLY[@]}"',
    ];
    const stdout = await inShell('bash', '--norc', '-c', commands.join('\n'));
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
    [
      ['erase', ''],
      ['cloud-east', 'region\\ two'],
    ],
    [['hold', '0000000041', '0'], []],
    [['-c', 'script.b'], ['script.bash']],
    [['import-image-data', 'script.b'], ['script.bash']],
    [
      ['completion', ''],
      ['bash', 'zsh', 'fish'],
    ],
    [['provider-n'], []],
    [['request', 'my'], ['my\\ label']],
    [['request', 'my\\ l'], ['my\\ label']],
    [['request', '"my'], ['my label']],
    [['request', "'my l"], ['my label']],
    [['request', "'it"], []],
    [['request', '"debian$'], []],
    [
      ['request', 'ns', ':', ''],
      ['small', 'tiny\\ one'],
    ],
    [['request', 'ns', ':small', 'fe'], ['fedora']],
    [['request', '"ns:s'], ['ns:small']],
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

describe('the completion in fish', () => {
  /** Returns the candidates for the last word of the line, without descriptions. */
  async function completed(line: string): Promise<string[]> {
    const script = join(folder, 'script.fish');
    const stdout = await inShell('fish', '--no-config', '-c', 'source $argv[1]; complete -C $argv[2]', script, line);
    return stdout.split('\n').flatMap((candidate) => (candidate === '' ? [] : [candidate.split('\t')[0]!]));
  }

  it.each<readonly [string, readonly string[]]>([
    ['des', ['describe']],
    ['-c nodepool.yaml image-p', ['image-pause']],
    ['--color=never dib-image-d', ['dib-image-delete']],
    ['list --state in', ['in-use', 'init']],
    ['image-list --state ', ['deleting', 'failed', 'gone', 'ready', 'uploading']],
    ['dib-image-list --state ', ['building', 'deleting', 'failed', 'paused', 'ready']],
    ['list --provider=reg', ['--provider=region two']],
    ['describe -o json node ', ['0000000041', '0000000042']],
    [
      'request list ',
      [`debian$(touch FOLDER/executed)`, 'debian-12', 'fedora', "it's", 'my label', 'ns:small', 'ns:tiny one'],
    ],
    ['request ns:s', ['ns:small']],
    ['hold 0000000041 0', []],
    ['-c script.b', ['script.bash']],
    ['import-image-data script.b', ['script.bash']],
    ['--connect-timeout ', []],
    ['provider-n', []],
  ])('completes %j', async (line, expected) => {
    expect((await completed(`nodepool ${line}`)).sort()).toEqual(
      expected.map((candidate) => candidate.replace('FOLDER', folder)),
    );
  });

  it('passes the configuration on', async () => {
    await completed('nodepool -c site.yaml --secure=secret.yaml delete ');
    expect(readFileSync(join(folder, 'calls'), 'utf8')).toContain('-c site.yaml --secure=secret.yaml list -o name\n');
  });
});

describe('the completion in zsh', () => {
  /** Prints each line of the arguments as zsh completes it on a terminal. */
  const DRIVER = `
zmodload zsh/zpty
zpty shell 'stty -echo; zsh -f -i'
zpty -w shell "PS1= RPS1=; unsetopt zle_bracketed_paste prompt_sp; unset zle_bracketed_paste"
zpty -w shell "fpath=('$PWD/functions' $fpath); autoload -U compinit; compinit -D -u"
zpty -w shell 'completed() { zle complete-word; print -rn -- "<<$BUFFER>>"; BUFFER= }; zle -N completed'
zpty -w shell 'bindkey "^T" completed; print -r -- REA""DY'
zpty -r shell out '*READY*'
for line; do
  zpty -w -n shell "$line"$'\\C-t'
  zpty -r shell out '*<<*>>'
  print -r -- "\${\${out##*<<}%>>}"
done
zpty -d shell
`;

  it('completes as far as the candidates agree', async () => {
    const lines: readonly (readonly [string, string])[] = [
      ['des', 'describe '],
      ['-c nodepool.yaml image-p', '-c nodepool.yaml image-pause '],
      ['list --state in-', 'list --state in-use '],
      ['list --provider=reg', 'list --provider=region\\ two '],
      ['describe -o json node ', 'describe -o json node 000000004'],
      ['request my', 'request my\\ label '],
      ['request "my', 'request "my label" '],
      ['request ns:s', 'request ns:small '],
      ['request debian\\$', 'request debian\\$\\(touch\\ FOLDER/executed\\) '],
      ['hold 0000000041 0', 'hold 0000000041 0'],
      ['-c script.b', '-c script.bash '],
      ['-c "a file" -s other.yaml delete ', '-c "a file" -s other.yaml delete 000000004'],
    ];
    const stdout = await inShell('zsh', '-f', '-c', DRIVER, 'zsh', ...lines.map(([line]) => `nodepool ${line}`));
    expect(stdout.split('\n').slice(0, -1)).toEqual(
      lines.map(([, expected]) => `nodepool ${expected.replace('FOLDER', folder)}`),
    );
    expect(readFileSync(join(folder, 'calls'), 'utf8')).toContain('-c a file -s other.yaml list -o name\n');
    expect(existsSync(join(folder, 'executed'))).toBe(false);
  });
});

describe.each(['bash', 'zsh', 'fish'])('the completion script for %s', (shell) => {
  it('has every command with its options', async () => {
    const script = await scriptFor(shell);
    const page = readFileSync(join(__dirname, '..', '..', '..', 'docs', 'reference', 'programs.md'), 'utf8');
    const section = page.split('## `nodepool`')[1]!.split('\n## ')[0]!;
    const list = /^Commands:\n([^`]*?)^(?:\n|```)/m.exec(section)?.[1] ?? '';
    const commands = [...list.matchAll(/^ {2}([a-z-]+)/gm)].map(([, name = '']) => name);
    expect(commands.length).toBeGreaterThan(25);
    expect(commands.filter((name) => !script.includes(name))).toEqual([]);
    const options = [...section.matchAll(/^ +(?:-\w, )?--([a-z-]+)/gm)];
    const names = new Set(options.map(([, name = '']) => name).filter((name) => !['help', 'version'].includes(name)));
    expect([...names].filter((name) => !script.includes(shell === 'fish' ? `-l ${name} ` : `--${name}`))).toEqual([]);
  });
});
