import { describe, expect, it } from '@jest/globals';
import { run } from '../src/index.js';
import { CapturedOutput } from './console.js';

async function cli(...args: string[]): Promise<{ code: number; out: CapturedOutput }> {
  const out = new CapturedOutput();
  const code = await run(args, { out, env: {}, interrupted: new AbortController().signal });
  return { code, out };
}

const COMMANDS = [
  'list',
  'request-list',
  'label-list',
  'delete',
  'hold',
  'request',
  'run',
  'wait',
  'image-list',
  'dib-image-list',
  'image-status',
  'alien-image-list',
  'image-build',
  'image-pause',
  'image-unpause',
  'image-delete',
  'image',
  'dib-image-delete',
  'export-image-data',
  'import-image-data',
  'info',
  'erase',
  'installation-id',
  'explain',
  'describe',
  'config-validate',
  'drivers',
  'plan',
  'journal',
  'doctor',
  'completion',
];

describe('the help', () => {
  it('lists every command and the common options', async () => {
    const { code, out } = await cli('--help');
    expect(code).toBe(0);
    for (const command of COMMANDS) expect(out.printed).toContain(`\n  ${command}`);
    for (const option of ['-c, --config', '-s, --secure', '-l, --logging-config', '-d, --debug', '--version']) {
      expect(out.printed).toContain(option);
    }
  });

  it.each(COMMANDS)('of %s contains an example', async (command) => {
    const { code, out } = await cli(command, '--help');
    expect(code).toBe(0);
    expect(out.printed).toMatch(new RegExp(`Example:\n {2}\\$ nodepool .*${command}`));
  });
});

it.each([
  [['help'], ['--help']],
  [
    ['help', 'list'],
    ['list', '--help'],
  ],
  [
    ['help', 'help'],
    ['help', '--help'],
  ],
])('%j prints the same as %j', async (args, others) => {
  const [first, second] = [await cli(...args), await cli(...others)];
  expect([first.code, first.out.noted]).toEqual([0, '']);
  expect(first.out.printed).toContain(`Usage: nodepool ${args[1] ?? '[options]'}`);
  expect(first.out.printed).toBe(second.out.printed);
});

describe('an invalid command line', () => {
  it.each([
    [['lsit'], "unknown command 'lsit'\n(Did you mean list?)"],
    [['help', 'lsit'], "unknown command 'lsit'\n(Did you mean list?)"],
    [['-c', 'nodepool.yaml', 'help', 'qwertyuiop'], "unknown command 'qwertyuiop'"],
    [['help', 'list', 'hold'], "too many arguments for 'help'"],
    [['list', '--colour'], "unknown option '--colour'"],
    [['list', '--format', 'xml'], 'Allowed choices are pretty, wide, json, yaml, name'],
    [['list', '--color', 'red'], 'Allowed choices are auto, always, never'],
    [['delete'], "missing required argument 'id'"],
    [['image-build'], "missing required argument 'image'"],
    [['image-delete', '--provider', 'p', '--image', 'i', '--upload-id', '1'], "required option '--build-id <id>'"],
    [['request'], "missing required argument 'label'"],
    [['request', 'small', ''], "'' is invalid for argument 'label'. Expected the name of a label"],
    [['run', '--label', '', '--', 'make'], 'Expected the name of a label'],
    [['request', 'small', '--count', '0'], 'whole number from 1 to 1000'],
    [['request', 'small', '--priority', '1000'], 'whole number from 0 to 999'],
    [['request', 'small', '--hold', 'long'], 'number of seconds'],
    [['request', 'small', '--timeout', '-1'], 'number of seconds'],
    [['run', '--', 'make'], "required option '--label <label>'"],
    [['run', '--label', 'small'], "missing required argument 'command'"],
    [['run', '--label', 'small', '--timeout', 'soon', '--', 'make'], 'duration such as 90s'],
    [['run', '--label', 'small', '--copy', ':x', '--', 'make'], 'LOCAL or LOCAL:REMOTE'],
    [['run', '--label', 'small', '--start-by', 'noon', '--', 'make'], 'time such as'],
    [[], 'Usage: nodepool'],
  ])('%j: reports the reason and exits with 2', async (args, why) => {
    const { code, out } = await cli(...args);
    expect(out.noted).toContain(why);
    expect(code).toBe(2);
  });
});

it('--version prints the version', async () => {
  const { code, out } = await cli('--version');
  expect(code).toBe(0);
  expect(out.printed).toMatch(/^\d+\.\d+\.\d+$/);
});
