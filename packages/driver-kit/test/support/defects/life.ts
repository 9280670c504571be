/** Drivers that violate the rules about an instance's lifecycle. */

import { ConfigurationError, type Call, type Instance } from '@nodepool/core';
import { explain } from '../acme-client.js';
import { idOf } from '../acme-machines.js';
import {
  instances,
  deletions,
  completeAfterCall,
  providers,
  ignoresUnknown,
  withUniqueIds,
} from '../changed-drivers.js';
import type { Defect } from './defect.js';

export const lifeDefects: Readonly<Record<string, Defect>> = {
  'life.launch': { changes: instances((each) => ({ ...each, interfaceIp: undefined })), says: /no interfaceIp/ },
  'life.ready': { changes: instances((each) => ({ ...each, ready: true })), says: /resolved after \d+ ms/ },
  'life.each-its-own': {
    changes: withUniqueIds({
      client: ({ create }) => {
        let first: Promise<string> | undefined;
        return { create: (...args) => (first ??= create(...args)) };
      },
    }),
    says: /5 launches returned these instances/,
  },
  'life.fails': {
    changes: instances((each) => ({ ...each, failed: undefined })),
    says: /failed while it booted failed with the code "timeout" instead of "instance-failed"/,
  },
  'life.vanishes': {
    changes: {
      adapter: ({ listInstances }) => {
        const seen = new Map<string, Instance>();
        const listed = async (call: Call): Promise<readonly Instance[]> => {
          for (const each of await listInstances(call)) seen.set(idOf(each.externalId), each);
          return [...seen.values()];
        };
        return { listInstances: listed };
      },
    },
    says: /waited for its timeout/,
  },
  'life.delete': { changes: deletions((machine) => completeAfterCall(machine)), says: /something is left/ },
  'life.delete-twice': {
    changes: withUniqueIds({
      explain: (error) => (error.kind === 'missing' ? new ConfigurationError('who?') : explain(error)),
    }),
    says: /the deletion of node 0000000001 failed with the code "configuration" \(outcome "not-applied"\): who\?/,
  },
  'life.delete-together': {
    changes: {
      client: ({ remove }, cloud) => ({
        remove: (id, call) =>
          cloud.existing().some((each) => each.id === id && each.goneAt !== Infinity)
            ? Promise.reject(new ConfigurationError('it is being deleted'))
            : remove(id, call),
      }),
    },
    says: /it is being deleted/,
  },
  'life.delete-unknown': { changes: providers(ignoresUnknown), says: /what is left after the deletion of one/ },
  'life.delete-unfinished': {
    changes: providers((provider) => ({
      cleanupNode: async () => undefined,
      waitForNodeCleanup: async () => undefined,
      config: provider.config,
    })),
    says: /something is left/,
  },
};
