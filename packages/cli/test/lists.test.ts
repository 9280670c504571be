/** Formats, filters and orders of lists, and lists that are watched. */

import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { parseYaml } from '@nodepool/pyyaml';
import { formatList, formatData } from '../src/lists/format-list.js';
import { displayWidth, toTable } from '@nodepool/store';
import { terminalTable } from '../src/lists/terminal-table.js';
import { World, type RunningCli } from './world.js';

let world: World;

beforeEach(async () => {
  world = new World();
  await world.start();
});

afterEach(() => world.stop());

const ESCAPE = '\u001b[';

/** Creates three nodes, 10 minutes, 5 minutes and 0 minutes old. */
async function threeNodes(): Promise<readonly [string, string, string]> {
  const first = await world.node({ state: 'ready', type: ['small'], provider: 'east' });
  await world.clock.advance(300_000);
  const second = await world.node({ state: 'building', type: ['big'], provider: 'west', external_id: 'server-2' });
  await world.clock.advance(300_000);
  const third = await world.node({ state: 'in-use', type: ['small', 'extra'], provider: 'west' });
  return [first, second, third];
}

async function linesOf(...args: string[]): Promise<string[]> {
  const { code, out } = await world.run(...args);
  expect([code, out.noted]).toEqual([0, '']);
  return out.printed === '' ? [] : out.printed.split('\n');
}

describe('filters and sorting of lists', () => {
  it.each([
    [
      ['--state', 'ready,building'],
      [0, 1],
    ],
    [
      ['--label', 'small'],
      [0, 2],
    ],
    [['--label', 'EXTRA'], [2]],
    [
      ['--provider', 'w*'],
      [1, 2],
    ],
    [['--provider', 'west', '--state', 'in-use'], [2]],
    [['--filter', 'server_id=server-2'], [1]],
    [['--filter', 'provider!=west'], [0]],
    [['--filter', 'label!=small'], [1]],
    [['--filter', 'state=ready', '--filter', 'label=big'], []],
    [
      ['--sort', 'age'],
      [2, 1, 0],
    ],
    [
      ['--sort', '-age'],
      [0, 1, 2],
    ],
    [
      ['--sort', '-provider,-id'],
      [2, 1, 0],
    ],
    [['--filter', 'server_id=server.2'], []],
    [['--state', 'HOLD'], []],
    [['--state', 'ready,'], [0]],
    [['--state', 'in*, aborted'], [2]],
    [
      ['--filter', 'locked=un*'],
      [0, 1, 2],
    ],
    [['--label', 'unknown'], []],
    [['--provider', ''], []],
  ])('apply %j', async (options, expected) => {
    const ids = await threeNodes();
    expect(await linesOf('list', '-o', 'name', ...options)).toEqual(expected.map((index) => ids[index]));
  });

  it('sort numbers by their value', async () => {
    const tenth = await world.node({ external_id: 'server-10' });
    const ninth = await world.node({ external_id: 'server-9' });
    expect(await linesOf('list', '-o', 'name', '--sort', 'server_id')).toEqual([ninth, tenth]);
  });

  it.each([
    [['--sort', 'ages'], 'there is no field "ages" in this list; did you mean "age"?'],
    [['--filter', 'stat=ready'], 'there is no field "stat" in this list; did you mean "state"?'],
    [['--fields', 'id,qwertyuiop'], 'there is no field "qwertyuiop" in this list; there are: id, provider, label'],
    [['--filter', 'ready'], 'expected FIELD=VALUE or FIELD!=VALUE'],
    [
      ['--state', 'ready,idle'],
      'no value of the field "state" matches "idle"; the values are: init, building, testing, ready, in-use, used, ' +
        'hold, deleting, failed, aborted, deleted',
    ],
    [['--state', ''], 'no value of the field "state" matches ""; the values are: init, '],
    [['--filter', 'state!=redy*'], 'no value of the field "state" matches "redy*"; the values are: init, '],
    [['--filter', 'locked=true'], 'no value of the field "locked" matches "true"; the values are: locked, unlocked'],
  ])('reject %j as wrong usage, with a suggestion', async (options, message) => {
    const { code, out } = await world.run('list', ...options);
    expect([code, out.printed]).toEqual([2, '']);
    expect(out.noted).toContain(message);
  });

  it.each([
    ['request-list', ['--state', 'ready'], 'requested, pending, fulfilled, failed'],
    ['image-list', ['--state', 'building'], 'uploading, ready, deleting, failed, gone'],
    ['dib-image-list', ['--state', 'uploading'], 'building, ready, deleting, failed, paused'],
    ['image-status', ['--filter', 'build_request=ready'], 'pending, building'],
    ['image-status', ['--filter', 'paused=no'], 'True, False'],
  ])('of %s reject %j and name the possible values', async (list, options, values) => {
    const { code, out } = await world.run(list, ...options);
    expect([code, out.printed]).toEqual([2, '']);
    expect(out.noted).toMatch(new RegExp(`^nodepool: no value of the field .*; the values are: ${values}$`));
  });

  it('reject a state that does not exist also with --watch', async () => {
    const running = world.cli('list', '--state', 'foo', '--watch');
    await world.until(() => running.code !== undefined || running.out.printed !== '');
    expect(running.code).toBe(2);
  });

  it('accept every value that a list shows', async () => {
    const build = await world.build('debian', 'b'.repeat(32));
    await world.upload(build, 'cloud', { listed: false });
    expect((await linesOf('image-list', '-o', 'name', '--state', 'gone')).length).toBe(1);
    expect((await linesOf('dib-image-list', '-o', 'name', '--state', 'ready')).length).toBe(1);
    for (const filter of ['build_request=', 'build_request!=pending', 'paused=false']) {
      expect(await linesOf('image-status', '-o', 'name', '--filter', filter)).toEqual(['debian']);
    }
    expect((await world.run('image-pause', 'debian')).code).toBe(0);
    expect((await linesOf('dib-image-list', '-o', 'name', '--state', 'paused')).length).toBe(1);
  });

  it.each(['', ','])('have their usual columns with --fields "%s"', async (fields) => {
    expect(await linesOf('list', '--fields', fields)).toEqual(await linesOf('list'));
  });

  it('sort requests by age; only the wide form has age and tenant', async () => {
    const old = await world.request({ created_time: world.clock.now() / 1000 - 90, tenant_name: 't1' });
    const young = await world.request({ created_time: world.clock.now() / 1000 - 5, tenant_name: 't2' });
    expect(await linesOf('request-list', '-o', 'name', '--sort', 'age')).toEqual([young, old]);
    expect(await linesOf('request-list', '--sort', '-age', '--fields', 'id,age,tenant_name', '-o', 'wide')).toEqual([
      'REQUEST ID      AGE          TENANT',
      `${old}  00:00:01:30  t1`,
      `${young}  00:00:00:05  t2`,
    ]);
    expect((await linesOf('request-list'))[1]).toMatch(/\| Declined By \| Event ID \|$/);
    expect((await linesOf('request-list', '-o', 'wide'))[0]).toMatch(/EVENT ID +AGE +TENANT +PROVIDER$/);
  });
});

describe('formats', () => {
  it('wide combines labels that occur repeatedly', async () => {
    await world.request({ node_types: [...Array.from({ length: 18 }, () => 'debian'), 'arm'] });
    expect((await linesOf('request-list', '-o', 'wide'))[1]).toContain('  debian ×18, arm  ');
    expect((await linesOf('request-list'))[3]).toContain('| debian,debian,debian,');
  });

  it('YAML has the same content as JSON, also in a YAML 1.1 parser', async () => {
    await world.node({ comment: 'no', hold_job: '0123', az: '12:30', user_data: { a: [1, null, true] } });
    const json = JSON.parse((await world.run('list', '--detail', '-o', 'json')).out.printed);
    const read = parseYaml((await world.run('list', '--detail', '-o', 'yaml')).out.printed);
    expect(read.document?.value).toEqual(json);
    expect(json).toEqual([expect.objectContaining({ comment: 'no', hold_job: '0123', AZ: '12:30' })]);
  });

  it('control characters in data are escaped', async () => {
    const hostile = '\u001b[2J\u009b1m\u202eevil\nline\u0007';
    await world.node({ comment: hostile, hold_job: 'C1\u009b2J' });
    for (const format of ['pretty', 'wide', 'json', 'yaml']) {
      const { out } = await world.run('list', '--detail', '-o', format);
      // eslint-disable-next-line no-control-regex -- These characters are the subject.
      expect(out.printed.replaceAll('\n', '')).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202a-\u202e]/);
    }
    const yaml = parseYaml((await world.run('list', '--fields', 'comment,hold_job', '-o', 'yaml')).out.printed);
    expect(yaml.document?.value).toEqual([{ comment: hostile, hold_job: 'C1\u009b2J' }]);
    expect(formatData({ 'k\u009b': 1 }, 'yaml')).toBe('"k\\u009b": 1');
  });

  it('names of uploads are not truncated', async () => {
    const upload = await world.upload(await world.build('debian', 'a'.repeat(32)), 'cloud');
    expect(await linesOf('image-list', '-o', 'name')).toEqual([`debian/${'a'.repeat(32)}/cloud/${upload.id}`]);
    expect(await linesOf('image-list', '-o', 'name', '--image', 'fedora')).toEqual([]);
  });
});

describe('a list on a terminal', () => {
  const LONG = 'a comment that is much longer than any terminal could ever show beside all the other columns';

  it.each([40, 80, 120])('of %d columns has no wrapped lines in the wide form', async (columns) => {
    await threeNodes();
    await world.node({ comment: `${LONG} 日本語`, external_id: 'x'.repeat(60) });
    world.terminal = { columns, rows: 24 };
    const lines = await linesOf('list', '-o', 'wide', '--color', 'never');
    expect(Math.max(...lines.map(displayWidth))).toBeLessThanOrEqual(columns);
    expect(lines[4]).toMatch(/^0000000003 .* ready +00:00:00:00/);
  });

  it('truncates long columns, but no ids and states', async () => {
    const id = await world.node({ external_id: 'x'.repeat(200) });
    world.terminal = { columns: 100, rows: 24 };
    const lines = await linesOf('list', '--color', 'never');
    expect(new Set(lines.map(displayWidth))).toEqual(new Set([100]));
    expect(lines[3]).toMatch(
      new RegExp(`^\\| ${id} \\| cloud +\\| small \\| x+… \\| .* \\| ready \\| 00:00:00:00 \\|`),
    );
  });

  it('omits the borders, and then the last columns, of a table that does not fit', async () => {
    const id = await world.node({ external_id: 'x'.repeat(200) });
    world.terminal = { columns: 80, rows: 24 };
    expect(await linesOf('list', '--color', 'never')).toEqual([
      expect.stringMatching(/^ID {10}PROVIDER {2}LABEL {2}SERVER ID +STATE {2}AGE {10}LOCKED$/),
      expect.stringMatching(new RegExp(`^${id} .* ready {2}00:00:00:00 {2}unlocked$`)),
    ]);
    world.terminal = { columns: 60, rows: 24 };
    expect(Math.max(...(await linesOf('list', '--color', 'never')).map(displayWidth))).toBeLessThanOrEqual(60);
  });

  it('folds repeated labels of the table', async () => {
    await world.request({ node_types: Array.from({ length: 18 }, () => 'debian') });
    world.terminal = { columns: 200, rows: 24 };
    expect((await linesOf('request-list', '--color', 'never'))[3]).toContain('| debian ×18 |');
  });

  it('is complete on a terminal of unknown size', async () => {
    await world.node({ comment: LONG });
    world.terminal = { columns: 0, rows: 0 };
    expect(await linesOf('list', '--detail', '--color', 'never')).toContainEqual(expect.stringContaining(LONG));
    expect(await linesOf('list', '--detail', '-o', 'wide')).toContainEqual(expect.stringContaining(LONG));
  });

  it('omits empty columns of the wide form', async () => {
    await world.node({});
    world.terminal = { columns: 500, rows: 24 };
    expect((await linesOf('list', '-o', 'wide'))[0]).not.toContain('COMMENT');
    world.terminal = undefined;
    expect((await linesOf('list', '-o', 'wide'))[0]).toContain('COMMENT');
  });

  it.each<readonly [readonly string[], Readonly<Record<string, string>>, boolean, boolean]>([
    [[], {}, true, true],
    [[], { NO_COLOR: '1' }, true, false],
    [[], { TERM: 'dumb' }, true, false],
    [['--color', 'never'], {}, true, false],
    [[], {}, false, false],
    [['--color', 'always'], { NO_COLOR: '1' }, false, true],
  ])('colors states with %j in %j', async (options, env, isTerminal, colored) => {
    await world.node({});
    world.env = env;
    if (isTerminal) world.terminal = { columns: 200, rows: 24 };
    const { out } = await world.run(...options, 'list');
    expect(out.printed.includes(ESCAPE)).toBe(colored);
    if (colored) expect(out.printed).toContain(`| ${ESCAPE}32mready${ESCAPE}0m |`);
  });

  it('is the same table as elsewhere if it fits', () => {
    const list = {
      columns: [
        { field: 'id', header: 'ID' },
        { field: 'state', header: 'State' },
      ],
      rows: [
        ['1', '日本'],
        [null, ['a', 'b']],
      ],
    };
    const display = { size: { columns: 80, rows: 24 }, color: false };
    expect(terminalTable(list, { borders: true, fixed: [] }, display)).toBe(toTable(list));
    const empty = { ...list, rows: [] };
    expect(formatList(empty, 'pretty', display)).toBe(toTable(empty));
    expect(formatList(empty, 'wide', display)).toBe('ID  STATE');
  });
});

describe('--watch', () => {
  /** Advances the clock until changes that arrived together are shown. */
  async function settle(running: RunningCli): Promise<void> {
    for (let step = 0; step < 20; step += 1) await world.clock.advance(20);
    expect(running.code).toBeUndefined();
  }

  async function interrupted(running: RunningCli): Promise<number | undefined> {
    running.interrupt();
    await world.until(() => running.code !== undefined);
    return running.code;
  }

  it('prints one block per change, and none for the passage of time', async () => {
    const id = await world.node({});
    const running = world.cli('list', '--watch', '--fields', 'id,state,age', '-o', 'wide');
    await world.until(() => running.out.printed !== '');
    await settle(running);
    await world.finish(world.store.nodes.lock(id).then((handle) => handle.release({ state: 'used' })));
    await settle(running);
    await world.clock.advance(60_000);
    expect(running.out.printed.replaceAll(/\d\d:\d\d:\d\d:\d\d/g, 'AGE')).toBe(
      ['ID          STATE  AGE', `${id}  ready  AGE`, '', 'ID          STATE  AGE', `${id}  used   AGE`].join('\n'),
    );
    expect(running.screens).toEqual([]);
    expect(await interrupted(running)).toBe(0);
  });

  it('prints a line of JSON per added, changed or removed row', async () => {
    const id = await world.node({});
    const running = world.cli('list', '--watch', '--fields', 'state', '-o', 'json');
    await world.until(() => running.out.printed !== '');
    await settle(running);
    const handle = await world.finish(world.store.nodes.lock(id));
    await world.finish(handle.update({ state: 'deleting' }));
    await settle(running);
    await world.finish(handle.remove());
    await settle(running);
    expect(running.out.printed.split('\n').map((line) => JSON.parse(line) as unknown)).toEqual([
      { change: 'added', name: id, object: { state: 'ready' } },
      { change: 'changed', name: id, object: { state: 'deleting' } },
      { change: 'removed', name: id },
    ]);
    expect(await interrupted(running)).toBe(0);
  });

  it('redraws a terminal in place, as far as it fits, with updated ages', async () => {
    for (let count = 0; count < 30; count += 1) await world.node({});
    world.terminal = { columns: 40, rows: 10 };
    const running = world.cli('list', '--watch', '-o', 'wide', '--fields', 'id,age');
    await world.until(() => running.screens.length > 0);
    await world.clock.advance(3000);
    const last = running.screens.at(-1)!.split('\n');
    expect(last).toHaveLength(9);
    expect(last[0]).toMatch(/^\d\d:\d\d:\d\d UTC, 30 rows; Ctrl-C ends$/);
    expect(last[2]).toMatch(/00:00:00:0[23]$/);
    expect(last[8]).toBe('… 24 more lines; a filter such as --sta…');
    expect(running.out.printed).toBe('');
    expect(await interrupted(running)).toBe(0);
  });

  it('reports a lost connection, and continues afterwards', async () => {
    const running = world.cli('list', '--watch', '-o', 'name');
    await world.until(() => running.out.printed !== '' || world.cliClients.length === 1);
    await settle(running);
    world.server.expireSession(world.cliClients[0]!);
    await world.until(() => running.out.noted.includes('not connected to ZooKeeper'));
    while (!running.out.noted.includes('connected to ZooKeeper again')) await world.clock.advance(1000);
    const id = await world.node({});
    while (!running.out.printed.includes(id)) await world.clock.advance(100);
    expect(await interrupted(running)).toBe(0);
  });
});
