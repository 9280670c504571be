/** The configuration of this driver. */

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ProviderConfigContext } from '@nodepool/core';
import { loadProvider } from '../src/config.js';
import { section } from './test-cloud.js';

const context: ProviderConfigContext = {
  diskImages: new Map(),
  labels: new Set(['small']),
  problem: (path, { expected }) => {
    assert.fail(`${path.join('.')}: ${expected}`);
  },
};

describe('a provider section', () => {
  it('is parsed into the project and the properties of a label’s instances', () => {
    const provider = loadProvider(section, context);
    const label = provider.pools.get('main')?.labels.get('small');

    assert.equal(provider.project, 'trial');
    assert.equal(label?.cloudImage, 'debian');
    assert.equal(label.cores, 2);
    assert.equal(label.ram, 2048);
  });

  it('can map the name of an image to its name in the cloud', () => {
    const renamed = { ...section, 'cloud-images': [{ name: 'debian', image: 'debian-12-generic' }] };

    const provider = loadProvider(renamed, context);

    assert.equal(provider.pools.get('main')?.labels.get('small')?.cloudImage, 'debian-12-generic');
  });
});
