/** The first sections of a site; see `nodepool init`. A cluster has no lists to choose from. */

import type { SiteGuide } from '@nodepool/core';
import type { Flavour } from './schema.js';

/** Requests of a first pod; many clusters refuse pods without any. */
const FIRST_POD = { cpu: 1, memory: 1024 };

/** Returns the guide of a driver. Pods of `openshiftpods` are in a project, which its pool names. */
export function siteGuideOf(flavour: Flavour): SiteGuide {
  const inProject = flavour === 'openshiftpods';
  return {
    settings: [
      { key: 'context', question: 'context of the kubeconfig file', optional: flavour === 'kubernetes' },
      ...(inProject ? [{ key: 'project', question: 'existing project of the pods' }] : []),
    ],
    choices: { image: 'required' },
    section: ({ context, project = 'main' }, label) => {
      const account = context === undefined ? {} : { context };
      if (label === undefined) return { ...account, pools: [] };
      const { name, maxServers, chosen } = label;
      const type = inProject ? {} : { type: 'pod' };
      return {
        ...account,
        pools: [
          {
            name: inProject ? project : 'main',
            'max-servers': maxServers,
            labels: [{ name, ...type, image: chosen.image ?? '', ...FIRST_POD }],
          },
        ],
      };
    },
  };
}
