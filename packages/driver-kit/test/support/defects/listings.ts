/** Drivers that violate the rules about listings, leaks, errors and quota. */

import { ConfigurationError, DriverError, QuotaInformation, TransientError, type Instance } from '@nodepool/core';
import { ACME_TOKEN } from '../acme-cloud.js';
import { idOf } from '../acme-machines.js';
import { when, creations, withInstance, providers, withUniqueIds } from '../changed-drivers.js';
import type { Defect } from './defect.js';

export const listingsDefects: Readonly<Record<string, Defect>> = {
  'list.complete': {
    changes: { client: ({ page }) => ({ page: async (from, call) => ({ ...(await page(from, call)), next: null }) }) },
    says: /instances that are listed: 3 instead of 9/,
  },
  'list.rejected': {
    changes: {
      client: ({ page }) => ({ page: (from, call) => page(from, call).catch(() => ({ items: [], next: null })) }),
    },
    says: /of which page 1 failed|whose first page failed/,
  },
  'list.facts': {
    changes: creations((make, saved, externalId) =>
      withInstance(make(saved, externalId), (each) => ({ ...each, resources: { instances: 2 } })),
    ),
    says: /the resources of a launched instance/,
  },
  'list.failed': {
    changes: {
      adapter: ({ listInstances }) => ({
        listInstances: async (call) => (await listInstances(call)).filter(({ failed }) => failed === undefined),
      }),
    },
    says: /an instance that has failed is missing from the list of instances/,
  },
  'list.reason': {
    changes: {
      adapter: ({ listInstances }) => ({
        listInstances: async (call) => (await listInstances(call)).map((each) => ({ ...each, failed: undefined })),
      }),
    },
    says: /an instance that has failed is listed without a reason/,
  },
  'list.gone': {
    changes: {
      adapter: ({ listInstances }) => {
        const known = new Map<string, Instance>();
        return {
          listInstances: async (call) => {
            for (const each of await listInstances(call)) known.set(idOf(each.externalId), each);
            return [...known.values()];
          },
        };
      },
    },
    says: /the instances in the list after one of two was deleted/,
  },
  'leak.offered': {
    changes: providers((provider, parts) => ({
      cleanupLeakedResources: async (round, call) => {
        const listed = await provider.listNodes(call);
        await round.leaked(listed.map(({ externalId, tags }) => ({ kind: 'instance', externalId, name: '', tags })));
        for (const { externalId } of listed) await parts.client().remove(idOf(externalId), call);
      },
    })),
    says: /instances after the round/,
  },
  'leak.gone': {
    changes: withUniqueIds({
      adapter: ({ deleteResource }) => ({
        deleteResource: (resource, call) =>
          deleteResource(resource, call).catch((error: unknown) => {
            throw new ConfigurationError('the server does not exist', { cause: error });
          }),
      }),
    }),
    says: /the server does not exist/,
  },
  'errors.quota': { changes: { explain: when('quota', new TransientError('no')) }, says: /code and outcome/ },
  'errors.capacity': { changes: { explain: when('capacity', new ConfigurationError('no')) }, says: /code and outcome/ },
  'errors.configuration': { changes: { explain: when('invalid', new TransientError('no')) }, says: /code and outcome/ },
  'errors.auth': { changes: { explain: when('auth', new TransientError('no')) }, says: /code and outcome/ },
  'errors.throttled': {
    changes: { explain: when('throttle', new TransientError('slow down')) },
    says: /the error of a creation that was throttled/,
  },
  'errors.list': {
    changes: { explain: when('refuse', new DriverError('unexpected', '500')) },
    says: /internal error of the cloud failed with the code "unexpected" instead of "transient" or "timeout": 500/,
  },
  'errors.list-auth': {
    changes: { explain: when('auth', new DriverError('unexpected', '401')) },
    says: /credentials are refused failed with the code "unexpected" instead of "auth": 401/,
  },
  'errors.secrets': {
    changes: { explain: when('echo', new TransientError(`502 echo of ${ACME_TOKEN}`)) },
    says: /an error or a log line contains a secret: .*502 echo/s,
  },
  'errors.start': {
    changes: { explain: when('auth', new DriverError('unexpected', '401')) },
    says: /a start whose credentials are refused failed with the code "unexpected" instead of "auth"/,
  },
  'quota.limits': {
    changes: {
      adapter: ({ getQuotaLimits }, { cloud }) => ({
        async getQuotaLimits(call) {
          const limits = await getQuotaLimits!(call);
          return limits.subtract(QuotaInformation.use({ instances: cloud.existing().length }));
        },
      }),
    },
    says: /with a quota of 7/,
  },
  'quota.label': {
    changes: {
      adapter: () => ({ getQuotaForLabel: async () => QuotaInformation.use({ instances: 1, cores: 4 }) }),
    },
    says: /the amount of cores/,
  },
  'quota.machine-type': {
    changes: { adapter: () => ({ getQuotaForLabel: async () => QuotaInformation.use({ instances: 1, cores: 2 }) }) },
    says: /need the same resources/,
  },
  'machine-types.honoured': {
    changes: {
      client: ({ create }) => ({ create: (tags, zone, image, call) => create(tags, zone, image, call, 's') }),
    },
    says: /an instance of machine type m has/,
  },
  'zones.honoured': {
    changes: { client: ({ create }) => ({ create: (tags, _zone, image, call) => create(tags, 'north', image, call) }) },
    says: /the zone of an instance/,
  },
};
