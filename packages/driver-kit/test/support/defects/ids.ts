/** Drivers that violate the rules about ids. */

import { externalIdKey, type Resource } from '@nodepool/core';
import type { AcmeClient } from '../acme-client.js';
import { idOf } from '../acme-machines.js';
import { providers, withUniqueIds } from '../changed-drivers.js';
import type { Defect } from './defect.js';

/** Sends a second delete call for each accepted one. */
function deletesTwice({ remove }: AcmeClient): Partial<AcmeClient> {
  return {
    async remove(id, call) {
      await remove(id, call);
      // The pause lets another launch take the id.
      await new Promise((resolve) => setImmediate(resolve));
      await remove(id, call);
    },
  };
}

export const idsDefects: Readonly<Record<string, Defect>> = {
  'ids.attempts': {
    changes: withUniqueIds({
      client: ({ create }, cloud) => ({
        // The cloud returns the existing server of the name instead of creating a second one.
        create: async (tags, zone, image, call) => {
          const node = tags['nodepool_node_id'];
          const existing = cloud.existing().find((server) => server.tags['nodepool_node_id'] === node);
          return existing?.id ?? create(tags, zone, image, call);
        },
      }),
    }),
    says: /two launch attempts of a node have the same external id/,
  },
  'ids.reused-deletion': { changes: { client: deletesTwice }, says: /nodes whose instance exists|the launch after/ },
  'ids.reused-before': {
    changes: withUniqueIds({}),
    says: /instances after the deletion of an instance whose id belongs to/,
  },
  'ids.reused-launch': {
    changes: withUniqueIds({}),
    says: /a launch whose id belongs to another instance did not fail/,
  },
  'ids.reused-leak': {
    changes: providers((provider, { client }) => ({
      cleanupLeakedResources: async (round, call) => {
        const listed = (await provider.listNodes(call)).map(({ externalId, tags }): Resource => ({
          kind: 'instance',
          externalId,
          name: externalIdKey(externalId),
          tags,
        }));
        for (const { externalId } of await round.leaked(listed)) await client().remove(idOf(externalId), call);
      },
    })),
    says: /nodes whose instance exists after the round/,
  },
};
