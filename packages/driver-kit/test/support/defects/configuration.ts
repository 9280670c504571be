/** Drivers that violate the rules about configuration and package. */

import { acmeSchema } from '../acme-driver.js';
import { schema } from '../changed-drivers.js';
import type { Defect } from './defect.js';

export const configurationDefects: Readonly<Record<string, Defect>> = {
  'config.accepted': {
    changes: schema((properties) => ({
      ...properties,
      secret: { type: 'string', description: 'No example has it.' },
    })),
    says: /no accepted example has/,
  },
  'config.described': {
    changes: schema((properties) => ({ ...properties, rate: { type: 'number' } })),
    says: /without a description/,
  },
  'config.unknown': {
    changes: { driver: (driver) => ({ ...driver, schema: { ...acmeSchema, additionalProperties: true } }) },
    says: /an unknown key at .* is accepted/,
  },
  'config.types': {
    changes: schema((properties) => ({ ...properties, rate: { description: 'Anything.' } })),
    says: /does not define the type of its values/,
  },
  'config.refused': {
    changes: {
      driver: (driver) => ({
        ...driver,
        getProviderConfig: (section, context) =>
          driver.getProviderConfig(section, { ...context, problem: () => undefined }),
      }),
    },
    says: /an unknown size at .* is accepted/,
  },
  'config.kept': {
    changes: {
      driver: (driver) => ({
        ...driver,
        getProviderConfig: (section, context) => ({ ...driver.getProviderConfig(section, context), section: {} }),
      }),
    },
    says: /`section` of the parsed configuration/,
  },
  'package.named': {
    manifest: { name: 'x', nodepool: { driver: 'other', api: 1 }, peerDependencies: { '@nodepool/core': '*' } },
    says: /the field `nodepool`/,
  },
  'package.peer': {
    manifest: { name: 'x', nodepool: { driver: 'acme', api: 1 }, dependencies: { '@nodepool/core': '*' } },
    says: /peerDependencies/,
  },
};
