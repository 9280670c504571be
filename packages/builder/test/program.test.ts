/** The command line. */

import { describe, expect, it } from '@jest/globals';
import { parseDaemonCommandLine } from '@nodepool/daemon';
import { PROGRAM } from '../src/program.js';

function parse(...args: string[]): { readonly result: unknown; readonly said: string } {
  let said = '';
  const say = (text: string): void => {
    said += text;
  };
  return { result: parseDaemonCommandLine(PROGRAM, ['node', PROGRAM.name, ...args], { out: say, err: say }), said };
}

describe('nodepool-builder', () => {
  it('has the options of every daemon, and its own', () => {
    expect(parse('-c', 'a.yaml', '-s', 'b.yaml', '-d', '-p', 'pid', '--build-workers', '2').result).toMatchObject({
      daemon: { config: 'a.yaml', secure: 'b.yaml', logging: undefined, debug: true, pidFile: 'pid' },
      own: { buildWorkers: 2, uploadWorkers: 4 },
    });
    expect(parse('--foreground').result).toMatchObject({ daemon: { config: '/etc/nodepool/nodepool.yaml' } });
  });

  it('explains an invalid number', () => {
    expect(parse('--upload-workers', '-1')).toMatchObject({ result: 2, said: expect.stringContaining('0 or more') });
    expect(parse('--build-workers', 'many').result).toBe(2);
    expect(parse('--fake').result).toBe(2);
  });

  it('describes its signals', () => {
    expect(parse('--help')).toMatchObject({ result: 0, said: expect.stringContaining('SIGUSR2') });
  });
});
