/** Findings about the licences and scripts of the packages in an installation. */

import { describe, expect, it } from '@jest/globals';
import type { JsonObject } from '@nodepool/core';
import { checkInstallScripts, checkLicences } from '../src/checks/licences.js';

const installed = (manifest: JsonObject, name = 'x'): Parameters<typeof checkLicences>[0] => [
  { name, version: '1.2.3', manifest },
];

describe('the check of licences', () => {
  it.each([
    { license: 'MIT' },
    { license: '(MIT OR GPL-3.0-only)' },
    { license: 'MIT AND ISC' },
    { license: { type: 'BSD-3-Clause', url: 'x' } },
    { licenses: [{ type: 'MIT', url: 'x' }] },
    { licenses: [{ type: 'GPL-2.0-only' }, { type: 'MIT' }] },
  ])('accepts %j', (manifest) => {
    expect(checkLicences(installed(manifest))).toEqual([]);
  });

  it.each([
    [{ license: 'GPL-3.0-only' }, 'has the licence GPL-3.0-only'],
    [{ license: 'MIT AND GPL-3.0-only' }, 'has the licence MIT AND GPL-3.0-only'],
    [{ license: 'SEE LICENSE IN LICENSE' }, 'has the licence SEE LICENSE IN LICENSE'],
    [{ license: 'UNLICENSED' }, 'has the licence UNLICENSED'],
    [{}, 'names no licence'],
    [{ licenses: [] }, 'names no licence'],
  ])('reports %j with the name of the package', (manifest, message) => {
    const [finding] = checkLicences(installed(manifest));

    expect(finding?.message).toContain(`x@1.2.3 ${message}`);
  });

  it('applies a licence that was read by hand only to that version', () => {
    const manifest = { license: 'BSD' };
    expect(checkLicences([{ name: 'url-template', version: '2.0.8', manifest }])).toEqual([]);
    expect(checkLicences([{ name: 'url-template', version: '2.0.9', manifest }])).toHaveLength(1);
  });
});

describe('the check of install scripts', () => {
  it.each(['preinstall', 'install', 'postinstall'])('reports %s', (script) => {
    const [finding] = checkInstallScripts(installed({ scripts: { [script]: 'node x.js' } }));

    expect(finding?.message).toContain(`x@1.2.3 runs "${script}"`);
  });

  it('accepts other scripts', () => {
    expect(checkInstallScripts(installed({ scripts: { prepare: 'tsc', test: 'jest' } }))).toEqual([]);
  });
});
