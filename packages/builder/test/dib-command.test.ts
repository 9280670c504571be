/** The command line and the environment of a build. */

import { dirname, join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import type { DiskImageConfig } from '@nodepool/core';
import { dibCommand, type DibCommand } from '../src/dib-command.js';
import { diskImage } from './support/world.js';

const PACKAGE = dirname(require.resolve('../package.json'));

const command = (more: Partial<DiskImageConfig>, formats = ['raw']): DibCommand =>
  dibCommand({ image: diskImage('debian', more), formats, elementsDir: undefined, output: '/images/debian-1' });

describe('the command', () => {
  it('can contain its own arguments, and an entry of elements several names', () => {
    expect(command({ dibCmd: 'sudo -E "my dib"', elements: ['debian-minimal', 'vm simple-init'] })).toMatchObject({
      command: 'sudo',
      args: [
        ...['-E', 'my dib', '-x', '-t', 'raw', '--checksum', '--no-tmpfs', '-o', '/images/debian-1'],
        ...['debian-minimal', 'vm', 'simple-init'],
      ],
    });
  });

  it('creates qcow2 for old hypervisors', () => {
    expect(command({}, ['qcow2', 'raw']).args.join(' ')).toContain(
      '-t qcow2,raw --checksum --no-tmpfs --qemu-img-options compat=0.10 -o',
    );
    expect(command({}, ['raw', 'vhd']).args.join(' ')).not.toContain('--qemu-img-options');
  });

  it('can be in the folder of the package', () => {
    const { command: program, args } = command({ dibCmd: 'env X=%p %p/bin/dib' });
    expect([program, args[0], args[1]]).toEqual(['env', `X=${PACKAGE}`, join(PACKAGE, 'bin/dib')]);
  });

  it('is rejected when it is empty', () => {
    expect(() => command({ dibCmd: ' ' })).toThrow('dib-cmd of disk image debian is empty');
    expect(() => command({ dibCmd: 'dib "--x' })).toThrow('a quote that is not closed');
  });
});

describe('the environment', () => {
  it('has the variables of elements and of the configuration', () => {
    expect(command({ release: '8.0', envVars: { DIB_IMAGE_NAME: 'mine', TMP_DIR: '/opt/tmp' } }).env).toEqual({
      DIB_RELEASE: '8.0',
      DIB_IMAGE_NAME: 'mine',
      DIB_IMAGE_FILENAME: '/images/debian-1',
      TMP_DIR: '/opt/tmp',
    });
    expect(command({}).env).toHaveProperty('DIB_RELEASE', '');
  });
});
