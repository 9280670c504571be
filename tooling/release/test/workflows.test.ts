/** The workflows of the public CI: pinned actions, few permissions, and commands that exist. */

import { accessSync, constants, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { workspaceRoot } from '../src/workspace.js';

const root = workspaceRoot();
const folder = join(root, '.github', 'workflows');
const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  readonly scripts: Readonly<Record<string, string>>;
};

describe.each(readdirSync(folder))('the workflow %s', (name) => {
  const text = readFileSync(join(folder, name), 'utf8');

  it('names each action by its commit, with the version as a comment', () => {
    const actions = [...text.matchAll(/uses: *(.*)/g)].map(([, action]) => action);
    expect(actions.length).toBeGreaterThan(0);
    for (const action of actions) expect(action).toMatch(/^[\w-]+\/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  });

  it('can only read the repository unless a job asks for more', () => {
    expect(text).toMatch(/^permissions:\n {2}contents: read\n/m);
  });

  it('runs programs that exist', () => {
    for (const [, program = ''] of text.matchAll(/(?:run|version|publish): *(\.ci\/[\w-]+)/g)) {
      expect(() => accessSync(join(root, program), constants.X_OK)).not.toThrow();
    }
  });
});

it.each(readdirSync(join(root, '.ci')))('.ci/%s runs commands of package.json', (name) => {
  const text = readFileSync(join(root, '.ci', name), 'utf8');
  const commands = [...text.matchAll(/^\s*(?:exec )?pnpm (?:--silent )?([a-z][\w:]*)/gm)].map(([, command]) => command);
  for (const command of commands) expect(Object.keys(scripts)).toContain(command);
});
